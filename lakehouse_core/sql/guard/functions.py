"""The allow-list of functions: those that only compute on their arguments.

Two lists, because sqlglot knows some functions as classes and the rest by name. Absent on purpose:
what reads files or the network (`read_csv`, `input_file_name`, `parquet_scan`), settings and the
environment (`current_setting`, `getenv`), other objects by name (`query_table`, `nextval`,
`IDENTIFIER`), what runs a text or foreign code (`query`, `reflect`, `java_method`, models), what
waits or raises at will (`sleep_ms`, `pg_sleep`), and what writes (`write_log`, `setseed`).
"""

from __future__ import annotations

from lakehouse_core.sql.listing import node_types, words

CLASSES = node_types("""
    Abs Acos Acosh AddMonths AnyValue ApproxDistinct ApproxQuantile ApproxQuantiles ApproxTopK
    ApproxTopSum ApproximateSimilarity ArgMax ArgMin Array ArrayAgg ArrayAll ArrayAny
    ArrayAppend ArrayCompact ArrayConcat ArrayConcatAgg ArrayConstructCompact ArrayContainedBy
    ArrayContains ArrayContainsAll ArrayDistinct ArrayExcept ArrayFilter ArrayFirst ArrayInsert
    ArrayIntersect ArrayLast ArrayMax ArrayMin ArrayOverlaps ArrayPosition ArrayPrepend
    ArrayRemove ArrayRemoveAt ArrayReverse ArraySize ArraySlice ArraySort ArraySum ArrayToString
    ArrayUnionAgg ArrayUniqueAgg ArraysZip Ascii Asin Asinh Atan Atan2 Atanh Avg
    Base64DecodeBinary Base64DecodeString Base64Encode BitLength BitmapBitPosition
    BitmapBucketNumber BitmapConstructAgg BitmapCount BitmapOrAgg BitwiseAndAgg BitwiseCount
    BitwiseOrAgg BitwiseXorAgg Booland Boolnot Boolor BoolxorAgg ByteLength Case Cast
    CastToStrType Cbrt Ceil CheckJson Chr CityHash64 Coalesce CodePointsToBytes
    CodePointsToString Collation Columns Concat ConcatWs Contains Convert ConvertTimezone
    ConvertToCharset Corr Cos Cosh CosineDistance Cot Coth Count CountIf CovarPop CovarSamp Csc
    Csch CumeDist CurrentCatalog CurrentDatabase CurrentDate CurrentDatetime CurrentSchema
    CurrentTime CurrentTimestamp CurrentTimestampLTZ CurrentTimezone CurrentUser CurrentVersion
    Date DateAdd DateBin DateDiff DateFromParts DateFromUnixDate DateStrToDate DateSub
    DateToDateStr DateToDi DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub DatetimeTrunc
    Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname Decode DecodeCase Degrees DenseRank
    DiToDate DotProduct Elt Encode EndsWith EqualNull EuclideanDistance Exists Exp Explode
    ExplodingGenerateSeries Extract Factorial FarmFingerprint First FirstValue Flatten Float64
    Floor Format FromBase FromBase32 FromBase64 FromISO8601Date FromISO8601Timestamp
    FromISO8601TimestampNanos FromJson GenerateDateArray GenerateSeries GenerateTimestampArray
    GetExtract GetIgnoreCase Getbit Greatest GroupConcat Grouping GroupingId HashAgg Hex
    HexDecodeString Hll Hour If Initcap Inline Int64 IsArray IsAscii IsInf IsNan IsNullValue
    JSONArray JSONArrayAgg JSONArrayAppend JSONArrayContains JSONArrayInsert JSONBContains
    JSONBExists JSONBExtract JSONBExtractScalar JSONBObjectAgg JSONBool JSONCast JSONExists
    JSONExtract JSONExtractArray JSONExtractScalar JSONFormat JSONKeys JSONKeysAtDepth
    JSONObject JSONObjectAgg JSONRemove JSONSet JSONStripNulls JSONType JSONValueArray
    JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval Kurtosis Lag Last LastDay
    LastValue LaxBool LaxFloat64 LaxInt64 LaxString Lead Least Left Length Levenshtein List Ln
    Localtime Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MD5 MD5Digest
    MD5NumberLower64 MD5NumberUpper64 MakeInterval ManhattanDistance Map MapCat MapContainsKey
    MapDelete MapFromEntries MapInsert MapKeys MapPick MapSize Max Median Min Minhash
    MinhashCombine Minute Mode Month Monthname MonthsBetween Nanvl Negative NextDay Normal
    Normalize NthValue Ntile Nullif NumberToStr Nvl2 ObjectAgg ObjectInsert Overlay Pad
    ParseBignumeric ParseDatetime ParseJSON ParseNumeric ParseTime ParseUrl PercentRank
    PercentileCont PercentileDisc Pi Posexplode PosexplodeOuter PreviousDay Quantile Quarter
    Radians Rand Randn Randstr RangeBucket RangeN Rank Reduce RegexpCount RegexpExtract
    RegexpExtractAll RegexpFullMatch RegexpILike RegexpInstr RegexpLike RegexpReplace
    RegexpSplit RegexpSubstr RegrAvgx RegrAvgy RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx
    RegrSxy RegrSyy RegrValx RegrValy Repeat Replace Reverse Right Rint Round RowNumber
    RtrimmedLength SHA SHA1Digest SHA2 SHA2Digest SafeAdd SafeConvertBytesToString SafeDivide
    SafeFunc SafeMultiply SafeNegate SafeSubtract Sec Sech Second SessionUser Shuffle Sign Sin
    Sinh Skewness Soundex SoundexP123 Space Split SplitPart SplitToTable Sqrt StDistance StPoint
    Stack StandardHash StarMap StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate
    StrToMap StrToTime StrToUnix String StringToArray StripNullValue Strtok StrtokSplitToTable
    StrtokToArray Struct StructExtract Stuff Substring SubstringIndex Sum Systimestamp Tan Tanh
    Time TimeAdd TimeDiff TimeFromParts TimeSlice TimeStrToDate TimeStrToTime TimeStrToUnix
    TimeSub TimeToStr TimeToTimeStr TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff
    TimestampFromParts TimestampLtzFromParts TimestampSub TimestampTrunc TimestampTzFromParts
    ToArray ToBase32 ToBase64 ToBinary ToBoolean ToChar ToCodePoints ToDays ToDecfloat ToDouble
    ToMap ToNumber ToVariant Transform Translate Trim Trunc Try TryBase64DecodeBinary
    TryBase64DecodeString TryCast TryHexDecodeBinary TryHexDecodeString TryToDecfloat TsOrDiToDi
    TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr TsOrDsToDatetime TsOrDsToTime
    TsOrDsToTimestamp Typeof Unhex Unicode Uniform UnixDate UnixMicros UnixMillis UnixSeconds
    UnixToStr UnixToTime UnixToTimeStr Unnest Upper UtcDate UtcTime UtcTimestamp Uuid VarMap
    Variance VariancePop Week WeekOfYear WeekStart WidthBucket XMLGet Year YearOfWeek
    YearOfWeekIso Zipf _ExplodeOuter
""")

# Those of them that give rows and may stand in FROM.
TABLE_CLASSES = node_types("""
    Explode ExplodingGenerateSeries Flatten GenerateSeries Inline Posexplode PosexplodeOuter
    SplitToTable Stack StrtokSplitToTable Unnest _ExplodeOuter
""")
TABLE_NAMES = words("""
    explode explode_outer flatten generate_series inline inline_outer json_tuple posexplode
    posexplode_outer range sequence stack unnest
""")

_COMMON = words("""
    abs any_value approx_count_distinct arbitrary array_join array_union arrays_overlap bit_and
    bit_or bit_xor bool_and bool_or bround btrim cardinality ceiling char char_length
    character_length checksum codepoint concat_ws contains corr cot count count_if crc32
    cume_dist date_format date_part day_of_month day_of_week day_of_year dayname degrees e
    element_at every exp expm1 find_in_set from_hex from_unixtime geometric_mean greatest
    hamming_distance hash histogram hour ifnull ilike infinity initcap instr is_finite
    is_infinite is_nan isfinite isinf isnan isnotnull isnull json_array_length json_object_keys
    json_parse json_size json_valid lcase levenshtein_distance like locate log10 log1p log2 lpad
    ltrim map_concat map_entries map_filter map_from_arrays map_keys map_values map_zip_with
    mask mod month monthname nan now nth_value nullifzero nvl octet_length ord percentile
    percentile_approx pmod position positive pow power product quote rpad rtrim second sha1
    sha256 sha512 signum slice some sort_array soundex split_part std stddev strpos substr
    to_char to_date to_hex to_json to_number to_timestamp to_utf8 transform_keys
    transform_values translate trim_array truncate typeof ucase unbase64 upper url_decode
    url_encode user uuid variance version weekday width_bucket xxhash64 year zeroifnull zip_with
""")

_TRINO = words("""
    all_match any_match approx_distinct approx_most_frequent approx_percentile array_agg
    array_except array_first array_histogram array_intersect array_last array_max array_min
    array_position array_remove array_sort at_timezone bar beta_cdf bing_tile bitwise_and_agg
    bitwise_left_shift bitwise_not bitwise_or_agg bitwise_right_shift
    bitwise_right_shift_arithmetic bitwise_xor_agg char2hexint classify combinations concat
    contains_sequence convex_hull_agg cosine_distance cosine_similarity current_catalog
    current_groups current_schema date date_add date_diff date_parse day dow doy
    empty_approx_set euclidean_distance evaluate_classifier_predictions filter flatten
    format_datetime format_number from_base from_base32 from_base64 from_base64url
    from_big_endian_32 from_big_endian_64 from_ieee754_32 from_ieee754_64 from_iso8601_date
    from_iso8601_timestamp from_iso8601_timestamp_nanos from_unixtime_nanos from_utf8
    great_circle_distance hmac_md5 hmac_sha1 hmac_sha256 hmac_sha512 human_readable_seconds
    index inverse_beta_cdf inverse_normal_cdf is_json_scalar json_array_contains json_array_get
    json_exists json_extract json_extract_scalar json_format json_query json_value
    last_day_of_month learn_classifier line_interpolate_point listagg ln luhn_check
    make_set_digest map map_agg map_from_entries map_union max_by md5 merge merge_set_digest
    millisecond min_by minute multimap_agg multimap_from_entries murmur3 ngrams none_match
    normal_cdf normalize numeric_histogram parse_data_size parse_datetime parse_duration
    parse_presto_data_size pi qdigest_agg quarter random reduce reduce_agg regexp_count
    regexp_extract regexp_extract_all regexp_like regexp_position regexp_replace regexp_split
    regr_intercept regr_slope render reverse rgb sequence shuffle sign skewness split
    split_to_map split_to_multimap spooky_hash_v2_32 spooky_hash_v2_64 st_area st_asbinary
    st_astext st_buffer st_centroid st_contains st_convexhull st_crosses st_difference
    st_dimension st_disjoint st_distance st_envelope st_equals st_exteriorring
    st_geometryfromtext st_geometryn st_geometrytype st_geomfrombinary st_interiorringn
    st_intersection st_intersects st_isclosed st_isempty st_issimple st_isvalid st_length
    st_linefromtext st_linestring st_numgeometries st_numpoints st_overlaps st_point st_pointn
    st_polygon st_relate st_startpoint st_touches st_union st_within st_x st_xmax st_xmin st_y
    st_ymax st_ymin starts_with tdigest_agg timezone timezone_hour timezone_minute to_base
    to_base32 to_base64 to_base64url to_big_endian_32 to_big_endian_64 to_geometry to_ieee754_32
    to_ieee754_64 to_iso8601 to_milliseconds to_spherical_geography to_unixtime trim try
    url_extract_fragment url_extract_host url_extract_parameter url_extract_path
    url_extract_port url_extract_protocol url_extract_query value_at_quantile
    values_at_quantiles week week_of_year wilson_interval_lower wilson_interval_upper
    with_timezone word_stem year_of_week yow zip
""")

_SPARK = words("""
    acosh add_months aggregate any approx_percentile array array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_max array_min
    array_position array_prepend array_remove array_repeat array_size array_sort arrays_zip
    ascii asinh atanh base64 bigint bin binary bit_count bit_get bit_length bitmap_bit_position
    bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg boolean cast collate
    collation collect_list collect_set concat conv convert_timezone count_min_sketch curdate
    current_catalog current_database current_date current_schema current_timestamp
    current_timezone current_user date date_add date_diff date_from_unix_date date_sub
    date_trunc dateadd datediff datepart day dayofmonth dayofweek dayofyear days decimal decode
    div double elt encode endswith equal_null exists extract factorial filter first first_value
    flatten float forall format_number format_string from_csv from_json from_utc_timestamp get
    get_json_object getbit grouping grouping_id hex histogram_numeric hll_sketch_agg
    hll_sketch_estimate hll_union hll_union_agg hours hypot int is_valid_utf8 is_variant_null
    json_tuple kurtosis last last_day last_value left length levenshtein listagg ln
    localtimestamp luhn_check make_date make_dt_interval make_interval make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_contains_key
    map_from_entries max_by md5 mean median min_by minute mode monotonically_increasing_id
    months months_between named_struct nanvl negative next_day nullif nvl2 overlay parse_json
    parse_url percent_rank pi printf quarter radians rand randn random reduce regexp
    regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
    regexp_substr repeat replace reverse right rint rlike schema_of_csv schema_of_json
    schema_of_variant schema_of_variant_agg sentences sequence session_user session_window sha
    sha2 shiftleft shiftright shiftrightunsigned shuffle size skewness smallint space
    spark_partition_id split stack startswith str_to_map string string_agg struct substring
    substring_index theta_difference theta_intersection theta_sketch_agg theta_sketch_estimate
    theta_union timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary
    to_csv to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
    to_variant_object transform trunc try_add try_avg try_divide try_element_at
    try_make_timestamp try_mod try_multiply try_parse_json try_subtract try_sum try_to_binary
    try_to_date try_to_number try_to_timestamp try_url_decode try_validate_utf8 try_variant_get
    unhex uniform unix_date unix_micros unix_millis unix_seconds unix_timestamp validate_utf8
    variant_get weekofyear window window_time years
""")

_DUCKDB = words("""
    acosh add age aggregate alias apply approx_quantile approx_top_k arg_max arg_max_null
    arg_min arg_min_null argmax argmin array_aggr array_aggregate array_append array_apply
    array_cat array_concat array_contains array_cosine_distance array_cosine_similarity
    array_cross_product array_distance array_distinct array_dot_product array_extract
    array_filter array_grade_up array_has array_has_all array_has_any array_indexof
    array_inner_product array_intersect array_length array_pop_back array_pop_front
    array_position array_prepend array_push_back array_push_front array_reduce array_resize
    array_reverse array_reverse_sort array_select array_slice array_sort array_to_json
    array_to_string array_transform array_unique array_value array_where array_zip asinh atanh
    bar base64 bin bit_count bit_length bit_position bitstring bitstring_agg century chr concat
    countif current_catalog current_database current_schema damerau_levenshtein date_add
    date_diff date_sub date_trunc datediff datepart datesub datetrunc day dayofmonth dayofweek
    dayofyear days_in_month decade decode divide editdist3 encode ends_with entropy enum_code
    enum_first enum_last enum_range epoch epoch_ms epoch_ns epoch_us equi_width_bins era even
    factorial favg fdiv filter first fmod format format_bytes formatreadabledecimalsize
    formatreadablesize from_base64 from_binary from_json from_json_strict fsum gamma gcd
    gen_random_uuid generate_subscripts geomean get_bit get_current_time get_current_timestamp
    grade_up greatest_common_divisor group_concat hamming hex histogram_exact isodow isoyear
    jaccard jaro_similarity jaro_winkler_similarity json json_array json_contains json_exists
    json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
    json_group_object json_group_structure json_keys json_merge_patch json_object json_pretty
    json_quote json_structure json_transform json_transform_strict json_type json_value julian
    kahan_sum kurtosis kurtosis_pop last last_day lcm least_common_multiple left left_grapheme
    len length_grapheme lgamma list list_aggr list_aggregate list_any_value list_append
    list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
    list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element
    list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all
    list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_last list_mad list_max list_median list_min list_mode list_pack list_position
    list_prepend list_product list_reduce list_resize list_reverse list_reverse_sort list_select
    list_sem list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg
    list_sum list_transform list_unique list_value list_var_pop list_var_samp list_where
    list_zip listagg ln log lower mad make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz map map_contains map_contains_entry map_contains_value
    map_extract map_extract_value map_from_entries max_by md5 md5_number md5_number_lower
    md5_number_upper mean median microsecond millennium millisecond min_by minute mismatches
    mode multiply nanosecond nextafter nfc_normalize normalized_interval parse_dirname
    parse_dirpath parse_filename parse_formatted_bytes parse_path pg_typeof prefix printf
    quantile quantile_cont quantile_disc quarter random range reduce regexp_escape
    regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table repeat reservoir_quantile reverse right
    right_grapheme round_even roundbankers row row_to_json sem session_user set_bit sign signbit
    split st_area st_asbinary st_astext str_split str_split_regex strftime string_agg
    string_split string_split_regex string_to_array strip_accents strlen strptime struct_concat
    struct_contains struct_extract struct_extract_at struct_has struct_insert struct_keys
    struct_pack struct_update struct_values substring substring_grapheme subtract suffix
    sum_no_overflow sumkahan time_bucket timezone timezone_hour timezone_minute to_base
    to_base64 to_binary to_centuries to_days to_decades to_hours to_microseconds to_millennia
    to_milliseconds to_minutes to_months to_quarters to_seconds to_weeks to_years today
    transaction_timestamp trim trunc try_strptime unbin unhex unicode union_extract union_tag
    union_value uuidv4 uuidv7 wavg week weekofyear weighted_avg xor yearweek
""")

_SNOWFLAKE = words("""
    approx_percentile approx_top_k array_agg array_append array_cat array_compact
    array_construct array_contains array_distinct array_except array_flatten array_insert
    array_intersection array_max array_min array_position array_prepend array_remove
    array_remove_at array_size array_slice array_sort array_to_string arrays_to_object as_array
    as_char as_date as_double as_integer as_number as_object bitand bitnot bitor bitshiftleft
    bitshiftright bitxor booland_agg boolor_agg charindex check_json coalesce collate compress
    concat conditional_change_event conditional_true_event convert_timezone date date_from_parts
    date_trunc dateadd datediff day dayofmonth dayofweek dayofweekiso dayofyear decode div0
    div0null editdistance endswith equal_null flatten get get_path getbit haversine
    hex_decode_string hex_encode iff insert is_array is_boolean is_date is_decimal is_double
    is_integer is_null_value is_object is_varchar jarowinkler_similarity last_day left len
    listagg max_by md5 median min_by minute mode months_between nvl2 object_agg object_construct
    object_construct_keep_null object_delete object_insert object_keys object_pick parse_ip
    parse_json parse_url quarter ratio_to_report regexp regexp_count regexp_instr regexp_like
    regexp_replace regexp_substr replace right rlike rtrimmed_length sha2 split split_to_table
    square startswith strip_null_value strtok strtok_to_array time time_from_parts time_slice
    timeadd timediff timestamp_from_parts timestamp_ltz_from_parts timestamp_ntz_from_parts
    timestamp_tz_from_parts timestampadd timestampdiff to_array to_binary to_boolean to_decimal
    to_double to_numeric to_object to_time to_timestamp_ltz to_timestamp_ntz to_timestamp_tz
    to_varchar to_variant trunc try_parse_json try_to_boolean try_to_date try_to_decimal
    try_to_double try_to_number try_to_numeric try_to_time try_to_timestamp unicode week weekiso
    weekofyear yearofweek yearofweekiso
""")

_POSTGRES = words("""
    age array_agg array_append array_cat array_length array_lower array_position array_prepend
    array_remove array_replace array_to_string array_upper ascii bit_length cbrt chr
    clock_timestamp concat current_database current_schema date_bin date_trunc div encode format
    format_type gcd gen_random_uuid json_agg json_array_elements json_build_array
    json_build_object json_each json_extract_path json_object json_object_agg jsonb_agg
    jsonb_array_elements jsonb_array_length jsonb_build_object jsonb_extract_path
    jsonb_object_keys jsonb_set jsonb_strip_nulls jsonb_typeof justify_days justify_hours
    justify_interval lcm left make_date make_interval make_time make_timestamp make_timestamptz
    md5 mode num_nonnulls num_nulls overlay percentile_cont percentile_disc quote_ident
    quote_literal random regexp_count regexp_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table repeat replace reverse right row_to_json scale
    sign statement_timestamp string_agg string_to_array to_jsonb transaction_timestamp unnest
""")

_NAMES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("trino", "presto", "athena"), _COMMON | _TRINO),
    **dict.fromkeys(("spark", "spark2", "databricks", "hive"), _COMMON | _SPARK),
    "duckdb": _COMMON | _DUCKDB,
    "snowflake": _COMMON | _SNOWFLAKE,
    **dict.fromkeys(("postgres", "redshift", "materialize", "risingwave"), _COMMON | _POSTGRES),
}


def harmless_names(dialect: str) -> frozenset[str]:
    """Names of harmless functions of a dialect, in lower case."""
    return _NAMES.get(dialect, _COMMON)

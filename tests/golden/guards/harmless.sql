-- What analysts, dashboards and notebooks send; every one may run for a role that reads. One per paragraph.

-- dialect: trino
SELECT date_trunc('month', ts) AS m, count(*) AS n FROM lake.demo.events WHERE user_id IN (1, 2, 3) GROUP BY 1 ORDER BY 2 DESC LIMIT 10

-- dialect: trino
SELECT approx_distinct(user_id), approx_percentile(latency_ms, 0.95) FROM lake.demo.events WHERE day = DATE '2026-01-01'

-- dialect: trino
SELECT json_extract_scalar(payload, '$.kind') AS kind, count(*) FROM lake.demo.events GROUP BY 1

-- dialect: trino
SELECT u.word, count(*) FROM lake.demo.posts p CROSS JOIN UNNEST(split(lower(p.body), ' ')) AS u (word) GROUP BY u.word

-- dialect: trino
SELECT customer_id, sum(total) OVER (PARTITION BY customer_id ORDER BY placed_at ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM lake.demo.orders

-- dialect: trino
SELECT map_agg(k, v), map_keys(m), cardinality(xs), element_at(xs, 1), xs[2] FROM lake.demo.t GROUP BY m, xs

-- dialect: trino
SELECT array_join(array_agg(name ORDER BY name), ', ') FROM lake.demo.t

-- dialect: trino
SELECT transform(xs, x -> x * 2), filter(xs, x -> x > 1), reduce(xs, 0, (s, x) -> s + x, s -> s), any_match(xs, x -> x = 1) FROM lake.demo.t

-- dialect: trino
SELECT try_cast(a AS bigint), try(b / c), coalesce(d, 'x'), nullif(e, ''), if(a > 1, 'y', 'n') FROM lake.demo.t

-- dialect: trino
SELECT from_unixtime(ts), to_unixtime(now()), date_diff('day', d, current_date), date_add('month', -1, d), date_parse(s, '%Y-%m-%d') FROM lake.demo.t

-- dialect: trino
SELECT regexp_like(a, '^x'), regexp_extract(a, '(\d+)', 1), regexp_replace(a, 'x', 'y'), split_part(a, ',', 2), strpos(a, 'x') FROM lake.demo.t

-- dialect: trino
SELECT * FROM lake.demo.orders FOR VERSION AS OF 4711 WHERE total > 5

-- dialect: trino
SELECT * FROM lake.demo.orders FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00 UTC'

-- dialect: trino
SELECT region, product, sum(amount) FROM lake.demo.sales GROUP BY GROUPING SETS ((region), (product), ())

-- dialect: trino
SELECT region, product, sum(amount), grouping(region, product) FROM lake.demo.sales GROUP BY CUBE (region, product)

-- dialect: trino
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n

-- dialect: trino
SELECT a, row_number() OVER w AS rn FROM lake.demo.t WINDOW w AS (PARTITION BY b ORDER BY c DESC)

-- dialect: trino
SELECT count(*) FILTER (WHERE status = 'ok') * 100.0 / count(*) FROM lake.demo.requests

-- dialect: trino
SELECT * FROM lake.demo.t TABLESAMPLE BERNOULLI (10)

-- dialect: trino
SELECT "odd name", t."select" FROM lake.demo."My Table" t WHERE "odd name" = 'it''s'

-- dialect: trino
SELECT max_by(name, score), min_by(name, score), arbitrary(name), bool_or(flag), checksum(name), geometric_mean(x) FROM lake.demo.t

-- dialect: trino
SELECT CAST(ROW(1, 'a') AS ROW(x bigint, y varchar)).x

-- dialect: trino
SELECT url_extract_host(url), url_extract_parameter(url, 'q'), from_base64(b), to_hex(md5(to_utf8(s))) FROM lake.demo.t

-- dialect: trino
SELECT at_timezone(ts, 'Europe/Berlin'), ts AT TIME ZONE 'UTC', day_of_week(d), week(d), year_of_week(d), format_datetime(ts, 'yyyy') FROM lake.demo.t

-- dialect: trino
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, name)

-- dialect: trino
SELECT a FROM lake.demo.t WHERE a > ALL (SELECT b FROM lake.demo.u) OR a = ANY (SELECT c FROM lake.demo.v)

-- dialect: trino
SELECT a FROM lake.demo.t EXCEPT SELECT a FROM lake.demo.u INTERSECT SELECT a FROM lake.demo.v

-- dialect: trino
SELECT sequence(1, 10), zip(xs, ys), flatten(xss), slice(xs, 1, 2), array_sort(xs), array_distinct(xs), contains(xs, 1) FROM lake.demo.t

-- dialect: trino
SELECT format('%s-%s', a, b), lpad(a, 5, '0'), concat_ws(',', a, b), translate(a, 'x', 'y'), levenshtein_distance(a, b), soundex(a) FROM lake.demo.t

-- dialect: trino
SELECT histogram(a), numeric_histogram(5, b), listagg(c, ',') WITHIN GROUP (ORDER BY c), stddev(d), corr(d, e), regr_slope(d, e) FROM lake.demo.t

-- dialect: trino
SELECT st_distance(st_point(a, b), st_point(c, d)), great_circle_distance(a, b, c, d) FROM lake.demo.t

-- dialect: trino
SELECT table_name FROM lake.information_schema.tables WHERE table_schema = 'demo'

-- dialect: trino
SELECT column_name, data_type FROM lake.information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position

-- dialect: trino
SHOW TABLES FROM lake.demo LIKE 'x%'

-- dialect: trino
SHOW COLUMNS FROM lake.demo.events

-- dialect: trino
SHOW CREATE TABLE lake.demo.events

-- dialect: trino
SHOW CATALOGS

-- dialect: trino
SHOW SCHEMAS FROM lake

-- dialect: trino
DESCRIBE lake.demo.events

-- dialect: trino
EXPLAIN SELECT * FROM lake.demo.events

-- dialect: trino
EXPLAIN (TYPE DISTRIBUTED, FORMAT JSON) SELECT count(*) FROM lake.demo.events

-- dialect: trino
/* dashboard 7 */ SELECT count(*) /* all of them */ FROM lake.demo.events -- today

-- dialect: trino
SELECT * FROM lake.demo.events WHERE message LIKE '%drop table%' OR message = 'DELETE FROM x; --'

-- dialect: trino
SELECT 'reflect(''a'')', 'read_text(x)' AS "read_csv" FROM lake.demo.t

-- dialect: trino
SELECT 1;

-- dialect: trino
SELECT current_user, current_date, localtimestamp, version()

-- dialect: trino
SELECT * FROM lake.demo.a NATURAL JOIN lake.demo.b

-- dialect: trino
SELECT * FROM lake.demo.a JOIN lake.demo.b USING (id) LEFT JOIN lake.demo.c ON b.x = c.x AND c.y IS NOT NULL

-- dialect: trino
SELECT a FROM lake.demo.t OFFSET 10 LIMIT 5

-- dialect: trino
SELECT a FROM lake.demo.t ORDER BY a NULLS FIRST FETCH FIRST 10 ROWS ONLY

-- dialect: trino
SELECT * FROM lake.demo."events$partitions"

-- dialect: trino
SELECT a, lag(a, 1, 0) OVER (ORDER BY b), ntile(4) OVER (ORDER BY b), cume_dist() OVER (ORDER BY b), nth_value(a, 2) OVER (ORDER BY b) FROM lake.demo.t

-- dialect: spark
SELECT date_format(ts, 'yyyy-MM') AS m, count(1) FROM lake.demo.events GROUP BY date_format(ts, 'yyyy-MM')

-- dialect: spark
SELECT k, explode(xs) AS x FROM lake.demo.t

-- dialect: spark
SELECT t.k, e.x FROM lake.demo.t t LATERAL VIEW explode(t.xs) e AS x

-- dialect: spark
SELECT t.k, e.pos, e.x FROM lake.demo.t t LATERAL VIEW OUTER posexplode(t.xs) e AS pos, x

-- dialect: spark
SELECT collect_list(a), collect_set(b), percentile_approx(c, 0.5), approx_count_distinct(d) FROM lake.demo.t GROUP BY e

-- dialect: spark
SELECT named_struct('a', 1, 'b', 'x').a, map('k', 1)['k'], array(1, 2, 3)[0], element_at(array(1), 1), size(array(1))

-- dialect: spark
SELECT get_json_object(j, '$.a'), from_json(j, 'a INT'), to_json(s), json_tuple(j, 'a', 'b') FROM lake.demo.t

-- dialect: spark
SELECT regexp_extract(a, '(\\d+)', 1), a RLIKE '^x', a ILIKE '%y%', substring_index(a, ',', 1), instr(a, 'x') FROM lake.demo.t

-- dialect: spark
SELECT date_add(d, 7), datediff(d, e), months_between(d, e), add_months(d, 1), last_day(d), next_day(d, 'MON'), trunc(d, 'MM'), weekofyear(d) FROM lake.demo.t

-- dialect: spark
SELECT /*+ BROADCAST(b) */ a.x, b.y FROM lake.demo.a a JOIN lake.demo.b b ON a.id = b.id

-- dialect: spark
SELECT /*+ REPARTITION(8, id) */ id FROM lake.demo.a

-- dialect: spark
SELECT * FROM lake.demo.t TABLESAMPLE (10 PERCENT)

-- dialect: spark
SELECT * FROM lake.demo.t VERSION AS OF 12345

-- dialect: spark
SELECT * FROM lake.demo.t TIMESTAMP AS OF '2026-01-01'

-- dialect: spark
SELECT * FROM lake.demo.t.snapshots

-- dialect: spark
SELECT * FROM lake.demo.t.files

-- dialect: spark
SELECT a, b FROM lake.demo.t DISTRIBUTE BY a SORT BY b

-- dialect: spark
SELECT a FROM lake.demo.t CLUSTER BY a

-- dialect: spark
SELECT `odd name`, `t`.`select` FROM lake.demo.`My Table` t

-- dialect: spark
SELECT * FROM lake.demo.sales PIVOT (sum(amount) FOR region IN ('EU', 'US'))

-- dialect: spark
SELECT transform(xs, x -> x + 1), filter(xs, x -> x > 0), aggregate(xs, 0, (acc, x) -> acc + x), exists(xs, x -> x = 1), forall(xs, x -> x > 0) FROM lake.demo.t

-- dialect: spark
SELECT a.* FROM lake.demo.a a LEFT SEMI JOIN lake.demo.b b ON a.id = b.id

-- dialect: spark
SELECT a.* FROM lake.demo.a a LEFT ANTI JOIN lake.demo.b b ON a.id = b.id

-- dialect: spark
SELECT CAST(a AS DECIMAL(10, 2)), a <=> b, a DIV b, a % b, 10L, 1.5D, double(a), string(b) FROM lake.demo.t

-- dialect: spark
SELECT nvl(a, 0), nvl2(a, b, c), ifnull(a, b), coalesce(a, b), greatest(a, b), least(a, b), pmod(a, 3), hash(a), xxhash64(b), crc32(c), sha2(d, 256), md5(e) FROM lake.demo.t

-- dialect: spark
SELECT window(ts, '10 minutes').start AS w, count(*) FROM lake.demo.events GROUP BY window(ts, '10 minutes')

-- dialect: spark
SELECT unix_timestamp(ts), from_unixtime(n), to_date(s), to_timestamp(s, 'yyyy'), from_utc_timestamp(ts, 'UTC'), make_date(2026, 1, 1), date_trunc('WEEK', ts) FROM lake.demo.t

-- dialect: spark
SELECT stack(2, 1, 'a', 2, 'b')

-- dialect: spark
SELECT inline(array(struct(1, 'a')))

-- dialect: spark
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, name)

-- dialect: spark
SELECT a, sum(b) FROM lake.demo.t GROUP BY a WITH ROLLUP

-- dialect: spark
SELECT a, sum(b) FROM lake.demo.t GROUP BY ROLLUP (a)

-- dialect: spark
SELECT * EXCEPT (secret) FROM lake.demo.t

-- dialect: spark
SELECT count(DISTINCT a, b), count_if(c > 1), any_value(d), first(e, true), last(f), max_by(g, h), mode(i), median(j), skewness(k), kurtosis(l) FROM lake.demo.t

-- dialect: spark
SELECT arrays_zip(a, b), array_contains(a, 1), array_union(a, b), array_except(a, b), sort_array(a), slice(a, 1, 2), sequence(1, 5), flatten(c), map_from_arrays(a, b), map_entries(m), transform_values(m, (k, v) -> v + 1) FROM lake.demo.t

-- dialect: spark
SELECT format_number(a, 2), format_string('%d', b), initcap(c), lpad(d, 3, '0'), overlay(e PLACING 'x' FROM 1), parse_url(u, 'HOST'), translate(f, 'a', 'b'), levenshtein(a, b), soundex(c), base64(g), unbase64(h), hex(i), unhex(j) FROM lake.demo.t

-- dialect: spark
SHOW TABLES IN lake.demo

-- dialect: spark
SHOW NAMESPACES IN lake

-- dialect: spark
DESCRIBE TABLE EXTENDED lake.demo.t

-- dialect: spark
DESCRIBE lake.demo.t

-- dialect: spark
EXPLAIN FORMATTED SELECT a FROM lake.demo.t

-- dialect: spark
SELECT current_timestamp(), current_date(), current_user(), current_catalog(), current_database()

-- dialect: spark
WITH x AS (SELECT a FROM lake.demo.t), y AS (SELECT a FROM x WHERE a > 1) SELECT count(*) FROM y

-- dialect: spark
SELECT 'text.`/etc/passwd`' AS a, "java_method" AS b

-- dialect: spark
SELECT monotonically_increasing_id() AS id, spark_partition_id(), uuid(), rand(7) FROM lake.demo.t

-- dialect: spark
SELECT variant_get(v, '$.a', 'int'), try_divide(a, b), try_cast(c AS INT), try_to_number(d, '99'), schema_of_json('{}'), to_char(e, '99'), typeof(f) FROM lake.demo.t

-- dialect: spark
FROM lake.demo.t SELECT a WHERE b > 1

-- dialect: duckdb
SELECT strftime(ts, '%Y-%m') AS m, count(*) FROM lake.demo.events GROUP BY ALL ORDER BY ALL

-- dialect: duckdb
FROM lake.demo.events

-- dialect: duckdb
FROM lake.demo.events SELECT kind, count(*) GROUP BY kind

-- dialect: duckdb
SELECT * EXCLUDE (secret) REPLACE (upper(name) AS name) FROM lake.demo.t

-- dialect: duckdb
SELECT COLUMNS('a.*') FROM lake.demo.t

-- dialect: duckdb
SELECT list_transform(xs, x -> x + 1), [y * 2 for y in xs if y > 1], list_filter(xs, x -> x > 0), list_sum(xs), xs[1:2], len(xs) FROM lake.demo.t

-- dialect: duckdb
SELECT {'a': 1, 'b': 'x'}.a, MAP {'k': 1}['k'], [1, 2, 3][1], struct_pack(a := 1), row(1, 2)

-- dialect: duckdb
SELECT unnest([1, 2, 3]) AS x

-- dialect: duckdb
SELECT * FROM unnest([1, 2, 3]) AS t(x)

-- dialect: duckdb
SELECT * FROM range(10) AS r(i)

-- dialect: duckdb
SELECT * FROM generate_series(1, 10) AS g(i)

-- dialect: duckdb
SELECT arg_max(name, score), quantile_cont(x, 0.5), approx_quantile(x, 0.9), mode(y), histogram(z), string_agg(a, ',' ORDER BY a), list(b), median(c), first(d), any_value(e), bool_and(f), kurtosis(g), entropy(h) FROM lake.demo.t

-- dialect: duckdb
SELECT DISTINCT ON (a) a, b FROM lake.demo.t ORDER BY a, b DESC

-- dialect: duckdb
SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS rn FROM lake.demo.t QUALIFY rn = 1

-- dialect: duckdb
SELECT * FROM lake.demo.a ASOF JOIN lake.demo.b USING (id, ts)

-- dialect: duckdb
SELECT a FROM lake.demo.a SEMI JOIN lake.demo.b USING (id)

-- dialect: duckdb
SELECT * FROM lake.demo.a POSITIONAL JOIN lake.demo.b

-- dialect: duckdb
SELECT date_diff('day', a, b), date_trunc('week', c), a + INTERVAL 3 DAY, time_bucket(INTERVAL '1 hour', ts), epoch(ts), last_day(d), dayname(d), monthname(d), strptime(s, '%Y'), make_date(2026, 1, 1), today(), age(ts) FROM lake.demo.t

-- dialect: duckdb
SELECT regexp_matches(a, 'x'), regexp_extract(a, '(x)', 1), regexp_replace(a, 'x', 'y', 'g'), a SIMILAR TO 'x%', a GLOB 'x*', string_split(a, ','), contains(a, 'x'), starts_with(a, 'x'), a[1:3], format('{}', b), printf('%d', c) FROM lake.demo.t

-- dialect: duckdb
SELECT a::INTEGER, TRY_CAST(b AS DATE), c // 2, d ** 2, e % 3, f IS DISTINCT FROM g, coalesce(h, i), ifnull(j, 0), greatest(k, l) FROM lake.demo.t

-- dialect: duckdb
SELECT payload->>'$.kind', payload->'$.a', json_extract_string(payload, '$.x'), json_array_length(payload) FROM lake.demo.t

-- dialect: duckdb
SELECT * FROM lake.demo.sales UNPIVOT (v FOR k IN (a, b))

-- dialect: duckdb
SELECT * FROM lake.demo.t USING SAMPLE 10%

-- dialect: duckdb
SELECT * FROM lake.demo.t TABLESAMPLE 10%

-- dialect: duckdb
SUMMARIZE lake.demo.t

-- dialect: duckdb
DESCRIBE lake.demo.t

-- dialect: duckdb
DESCRIBE SELECT a FROM lake.demo.t

-- dialect: duckdb
EXPLAIN SELECT * FROM lake.demo.t

-- dialect: duckdb
SHOW TABLES

-- dialect: duckdb
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n

-- dialect: duckdb
WITH x AS MATERIALIZED (SELECT a FROM lake.demo.t) SELECT * FROM x

-- dialect: duckdb
VALUES (1, 'a'), (2, 'b')

-- dialect: duckdb
SELECT * FROM (VALUES (1), (2)) v(a)

-- dialect: duckdb
SELECT a AS "odd name" FROM lake.demo."My Table"

-- dialect: duckdb
SELECT 'read_csv(''/etc/passwd'')' AS x, 'ATTACH' AS y FROM lake.demo.t

-- dialect: duckdb
SELECT a, sum(b) FILTER (WHERE c) FROM lake.demo.t GROUP BY ROLLUP (a)

-- dialect: duckdb
SELECT hash(a), md5(b), sha256(c), base64(d), hex(e), levenshtein(f, g), jaccard(f, g), uuid(), random() FROM lake.demo.t

-- dialect: duckdb
SELECT a FROM lake.demo.t WHERE b IN (SELECT c FROM lake.demo.u WHERE u.d = t.d)

-- dialect: duckdb
SELECT t.a, (SELECT max(u.b) FROM lake.demo.u u WHERE u.a = t.a) AS m FROM lake.demo.t t

-- dialect: duckdb
SELECT * FROM lake.demo.t, LATERAL (SELECT max(b) AS m FROM lake.demo.u WHERE u.a = t.a) l

-- dialect: duckdb
SELECT a FROM lake.demo.t UNION ALL BY NAME SELECT b AS a FROM lake.demo.u

-- dialect: duckdb
SELECT count(*) FROM lake.demo.t WHERE d BETWEEN DATE '2026-01-01' AND DATE '2026-02-01' AND NOT e

-- dialect: duckdb
SELECT max(a) - min(a) AS spread, stddev_samp(b), var_pop(c), corr(d, e), regr_r2(f, g) FROM lake.demo.t HAVING count(*) > 1

-- dialect: snowflake
SELECT DATE_TRUNC('month', ts) AS m, COUNT(*) FROM lake.demo.events WHERE kind = 'x' GROUP BY 1

-- dialect: snowflake
SELECT f.value:name::string AS name FROM lake.demo.t, LATERAL FLATTEN(input => t.items) f

-- dialect: snowflake
SELECT a, ROW_NUMBER() OVER (PARTITION BY b ORDER BY c) AS rn FROM lake.demo.t QUALIFY rn = 1

-- dialect: snowflake
SELECT IFF(a > 1, 'y', 'n'), NVL(b, 0), ZEROIFNULL(c), DECODE(d, 1, 'a', 'b'), TRY_TO_NUMBER(e), TO_VARCHAR(f), DATEADD(day, 1, g), DATEDIFF(day, g, h) FROM lake.demo.t

-- dialect: snowflake
SELECT payload:a.b[0]::int, PARSE_JSON(s), OBJECT_CONSTRUCT('a', 1), ARRAY_SIZE(x), ARRAY_AGG(y) WITHIN GROUP (ORDER BY y) FROM lake.demo.t GROUP BY ALL

-- dialect: snowflake
SELECT LISTAGG(a, ',') WITHIN GROUP (ORDER BY a), MEDIAN(b), APPROX_COUNT_DISTINCT(c), APPROX_PERCENTILE(d, 0.9), MAX_BY(e, f), RATIO_TO_REPORT(g) OVER () FROM lake.demo.t

-- dialect: snowflake
SELECT * FROM lake.demo.t AT (TIMESTAMP => '2026-01-01'::timestamp)

-- dialect: snowflake
SELECT * FROM lake.demo.t SAMPLE (10)

-- dialect: snowflake
SELECT TOP 10 a FROM lake.demo.t

-- dialect: snowflake
SELECT * FROM lake.demo.sales PIVOT (SUM(amount) FOR region IN ('EU', 'US'))

-- dialect: snowflake
SELECT a ILIKE '%x%', REGEXP_LIKE(b, 'x'), REGEXP_SUBSTR(c, 'x'), SPLIT_PART(d, ',', 1), CHARINDEX('x', e), STARTSWITH(f, 'x') FROM lake.demo.t

-- dialect: snowflake
SELECT CONVERT_TIMEZONE('UTC', ts), LAST_DAY(d), DAYOFWEEK(d), WEEKISO(d), TIME_SLICE(ts, 15, 'MINUTE'), TO_TIMESTAMP_NTZ(s) FROM lake.demo.t

-- dialect: snowflake
SELECT CURRENT_TIMESTAMP(), CURRENT_DATE, CURRENT_USER()

-- dialect: snowflake
SELECT a FROM lake.demo.t MINUS SELECT a FROM lake.demo.u

-- dialect: snowflake
SELECT * EXCLUDE (secret) FROM lake.demo.t

-- dialect: snowflake
SELECT HASH(a), MD5(b), SHA2(c, 256), EDITDISTANCE(d, e), DIV0(f, g), SQUARE(h), BITAND(i, 1) FROM lake.demo.t

-- dialect: snowflake
SELECT * FROM lake.demo.a ASOF JOIN lake.demo.b MATCH_CONDITION (a.ts >= b.ts) ON a.id = b.id

-- dialect: snowflake
EXPLAIN SELECT a FROM lake.demo.t

-- dialect: snowflake
SHOW TABLES IN lake.demo

-- dialect: postgres
SELECT date_trunc('day', ts)::date AS d, count(*) FROM lake.demo.events WHERE kind = 'x' GROUP BY 1 ORDER BY 1

-- dialect: postgres
SELECT a, string_agg(b, ',' ORDER BY b), array_agg(c), bool_or(d), percentile_cont(0.5) WITHIN GROUP (ORDER BY e) FROM lake.demo.t GROUP BY a

-- dialect: postgres
SELECT payload->>'kind', payload#>>'{a,b}', jsonb_array_length(x) FROM lake.demo.t

-- dialect: postgres
SELECT * FROM lake.demo.t WHERE a ~ '^x' OR b ILIKE '%y%' OR c SIMILAR TO 'z%'

-- dialect: postgres
SELECT generate_series(1, 5)

-- dialect: postgres
SELECT * FROM generate_series(1, 5) AS g(i)

-- dialect: postgres
SELECT DISTINCT ON (a) a, b FROM lake.demo.t ORDER BY a, b DESC

-- dialect: postgres
SELECT extract(epoch FROM ts), age(ts), to_char(ts, 'YYYY'), now() - interval '1 day', ts AT TIME ZONE 'UTC' FROM lake.demo.t

-- dialect: postgres
SELECT t.a, l.m FROM lake.demo.t t CROSS JOIN LATERAL (SELECT max(b) AS m FROM lake.demo.u u WHERE u.a = t.a) l

-- dialect: postgres
SELECT coalesce(a, b), greatest(a, b), nullif(c, ''), a::numeric(10, 2), array_length(d, 1), d[1], split_part(e, ',', 1), left(f, 3) FROM lake.demo.t

-- dialect: postgres
SELECT count(*) FILTER (WHERE a > 1), sum(b) OVER (PARTITION BY c ORDER BY d RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM lake.demo.t

-- dialect: postgres
SELECT current_database(), current_schema(), version()

-- dialect: athena
SELECT date_trunc('month', ts) AS m, count(*) AS n FROM lake.demo.events WHERE dt = '2026-01-01' GROUP BY 1

-- dialect: athena
SELECT json_extract_scalar(payload, '$.a'), approx_distinct(user_id) FROM demo.events GROUP BY 1

-- dialect: athena
WITH x AS (SELECT a FROM demo.t) SELECT count(*) FROM x

-- dialect: athena
SELECT * FROM demo.t CROSS JOIN UNNEST(xs) AS u (x)

-- dialect: athena
SELECT * FROM demo.t FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00 UTC'

-- Statements on TPC-H tables. Whatever is called translated gives equal rows wherever it runs. One per paragraph.

-- dialect: trino
SELECT n_name, n_regionkey FROM nation ORDER BY n_regionkey, n_name

-- dialect: trino
SELECT n_regionkey, count(*) AS n FROM nation GROUP BY n_regionkey ORDER BY n DESC, 1

-- dialect: trino
SELECT max(o_totalprice) - min(o_totalprice) AS spread FROM orders WHERE o_orderdate >= DATE '1995-01-01'

-- dialect: trino
SELECT c_name FROM customer WHERE c_acctbal > 9000 AND c_mktsegment IN ('BUILDING', 'MACHINERY')

-- dialect: trino
SELECT o_orderkey FROM orders WHERE o_orderdate BETWEEN DATE '1994-01-01' AND DATE '1994-01-31' + INTERVAL '1' MONTH

-- dialect: trino
SELECT year(o_orderdate) AS y, sum(o_totalprice) FROM orders GROUP BY 1 ORDER BY 1

-- dialect: trino
SELECT extract(month FROM o_orderdate) AS m, count(*) FROM orders GROUP BY 1

-- dialect: trino
SELECT upper(n_name) || '-' || lower(n_name) AS x, length(n_name), substr(n_name, 2, 3) FROM nation

-- dialect: trino
SELECT n_name FROM nation WHERE n_name LIKE 'U%' OR n_name LIKE '%AN'

-- dialect: trino
SELECT CASE WHEN c_acctbal < 0 THEN 'debt' ELSE 'ok' END AS state, count(*) FROM customer GROUP BY 1

-- dialect: trino
SELECT coalesce(nullif(n_name, 'FRANCE'), 'none') AS x FROM nation ORDER BY 1

-- dialect: trino
SELECT c_custkey, rank() OVER (PARTITION BY c_nationkey ORDER BY c_acctbal DESC) AS place FROM customer

-- dialect: trino
SELECT c_custkey, lag(c_acctbal) OVER (ORDER BY c_custkey) AS before FROM customer ORDER BY 2 LIMIT 20

-- dialect: trino
SELECT o_orderkey, sum(o_totalprice) OVER (ORDER BY o_orderkey ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders WHERE o_orderkey < 500

-- dialect: trino
SELECT n_name, nullif(n_regionkey, 1) AS r FROM nation ORDER BY r, n_name

-- dialect: trino
SELECT n_name, nullif(n_regionkey, 1) AS r FROM nation ORDER BY r DESC, n_name

-- dialect: trino
SELECT DISTINCT n_regionkey FROM nation EXCEPT SELECT r_regionkey FROM region WHERE r_name = 'ASIA'

-- dialect: trino
SELECT n_regionkey, n_nationkey, count(*) AS n FROM nation GROUP BY ROLLUP (n_regionkey, n_nationkey)

-- dialect: trino
SELECT c_nationkey, count(*) FILTER (WHERE c_acctbal > 0) AS n FROM customer GROUP BY c_nationkey

-- dialect: trino
SELECT count(DISTINCT c_nationkey), sum(CAST(c_acctbal AS double)) FROM customer

-- dialect: trino
SELECT n.n_name, r.r_name FROM nation n LEFT JOIN region r ON n.n_regionkey = r.r_regionkey AND r.r_name <> 'ASIA'

-- dialect: trino
SELECT n_name FROM nation WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name LIKE 'A%')

-- dialect: trino
SELECT n_name FROM nation n WHERE EXISTS (SELECT 1 FROM customer c WHERE c.c_nationkey = n.n_nationkey AND c.c_acctbal < -900)

-- dialect: trino
WITH top AS (SELECT c_nationkey, sum(c_acctbal) AS s FROM customer GROUP BY c_nationkey) SELECT n_name, s FROM nation JOIN top ON n_nationkey = c_nationkey ORDER BY s DESC LIMIT 5

-- dialect: trino
SELECT date_trunc('month', o_orderdate) AS m, count(*) FROM orders GROUP BY 1 ORDER BY 1

-- dialect: trino
SELECT round(sum(l_extendedprice * (1 - l_discount)), 2) AS revenue FROM lineitem WHERE l_shipdate < DATE '1993-01-01'

-- dialect: trino
SELECT abs(c_acctbal), ceil(c_acctbal), floor(c_acctbal), sign(c_acctbal) FROM customer

-- dialect: trino
SELECT replace(n_name, 'A', 'x'), strpos(n_name, 'A'), starts_with(n_name, 'C') FROM nation

-- dialect: trino
SELECT n_name FROM nation ORDER BY n_name OFFSET 3 LIMIT 4

-- dialect: trino
SELECT * FROM region

-- dialect: trino
SELECT r.*, n.n_name FROM region r, nation n WHERE r.r_regionkey = n.n_regionkey

-- dialect: trino
SELECT n_name, mod(n_nationkey, 4) AS m, n_nationkey % 3 AS k, -n_nationkey AS neg FROM nation

-- dialect: trino
SELECT c_mktsegment, stddev(CAST(c_acctbal AS double)) > 0 AS spread FROM customer GROUP BY 1

-- dialect: trino
SELECT try_cast(n_name AS bigint), n_regionkey / 2 FROM nation

-- dialect: trino
SELECT avg(l_discount), avg(l_quantity) FROM lineitem

-- dialect: trino
SELECT date_diff('day', o_orderdate, DATE '1998-01-01') FROM orders

-- dialect: trino
SELECT approx_distinct(o_custkey) FROM orders

-- dialect: trino
SELECT array_agg(n_name)[1] FROM nation

-- dialect: trino
SELECT regexp_like(n_name, '^[A-C]'), regexp_extract(n_name, 'X') FROM nation

-- dialect: trino
SELECT day_of_week(o_orderdate) FROM orders

-- dialect: trino
SELECT concat(n_name, NULL) FROM nation

-- dialect: trino
SELECT greatest(n_nationkey, NULL) FROM nation

-- dialect: trino
SELECT substr(n_name, 0) FROM nation

-- dialect: trino
SELECT CAST(c_acctbal AS bigint) FROM customer

-- dialect: trino
SELECT CAST(c_acctbal AS varchar) FROM customer

-- dialect: trino
SELECT n_name FROM nation WHERE regexp_like(n_name, 'AN')

-- dialect: duckdb
SELECT n_regionkey AS r, count(*) AS n FROM nation GROUP BY n_regionkey ORDER BY n DESC, r

-- dialect: duckdb
SELECT n_name, row_number() OVER (ORDER BY n_name) AS rn FROM nation QUALIFY rn < 5

-- dialect: duckdb
SELECT n_name FROM nation WHERE n_name ILIKE '%an%'

-- dialect: duckdb
SELECT o_orderkey FROM orders WHERE o_orderdate < DATE '1992-02-01' + INTERVAL 10 DAY

-- dialect: duckdb
SELECT n_name, n_regionkey FROM nation ORDER BY nullif(n_regionkey, 2) DESC NULLS LAST, 1

-- dialect: duckdb
SELECT sum(l_quantity) FROM lineitem WHERE l_shipmode = 'AIR' AND l_discount BETWEEN 0.05 AND 0.07

-- dialect: duckdb
SELECT year(o_orderdate) AS y, month(o_orderdate) AS m, count(*) FROM orders GROUP BY ALL

-- dialect: duckdb
SELECT * EXCLUDE (n_comment) FROM nation

-- dialect: duckdb
SELECT n_regionkey / 2 FROM nation

-- dialect: duckdb
SELECT n_regionkey AS k, count(*) FROM nation GROUP BY k

-- dialect: duckdb
SELECT list(n_name) FROM nation

-- dialect: spark
SELECT n_name, nullif(n_regionkey, 1) AS r FROM nation ORDER BY r, n_name

-- dialect: spark
SELECT n_name, nullif(n_regionkey, 1) AS r FROM nation ORDER BY r DESC, n_name

-- dialect: spark
SELECT `n_name` FROM `nation` WHERE n_name <=> 'CHINA'

-- dialect: spark
SELECT c_nationkey, sum(c_acctbal) AS s FROM customer GROUP BY c_nationkey HAVING sum(c_acctbal) > 0

-- dialect: spark
SELECT n_name FROM nation WHERE n_name RLIKE 'AN'

-- dialect: spark
SELECT collect_list(n_name) FROM nation

-- dialect: spark
SELECT n_name FROM nation LEFT SEMI JOIN region ON n_regionkey = r_regionkey

-- dialect: spark
SELECT date_format(o_orderdate, 'yyyy-MM') FROM orders

-- dialect: spark
SELECT n_regionkey / 2 FROM nation

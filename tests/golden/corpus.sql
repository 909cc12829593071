-- Statements to try things on: what BI tools, analysts and jobs send. One per paragraph.

-- dialect: trino
SELECT date_trunc('month', ts) AS m, count(*) AS n FROM lake.demo.events WHERE user_id IN (1, 2,
3) AND ts > TIMESTAMP '2024-01-01 00:00:00' GROUP BY 1 ORDER BY 2 DESC LIMIT 10

-- dialect: trino
SELECT o.status, sum(o.total) AS revenue FROM lake.demo.orders_cdc o JOIN lake.demo.customers c
ON o.customer_id = c.id WHERE c.country = 'DE' AND o.placed_at BETWEEN DATE '2024-01-01' AND
DATE '2024-02-01' GROUP BY o.status

-- dialect: trino
WITH top AS (SELECT customer_id, sum(total) AS t FROM orders GROUP BY customer_id HAVING
sum(total) > 1000) SELECT c.name, top.t FROM customers c JOIN top ON top.customer_id = c.id
ORDER BY top.t DESC

-- dialect: trino
SELECT a, row_number() OVER (PARTITION BY b ORDER BY c DESC) AS rn FROM t WHERE d IS NOT NULL
AND e <> 'x' AND f NOT IN (-1, 0, 1)

-- dialect: trino
INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, NULL)

-- dialect: trino
DELETE FROM lake.demo.events WHERE day < DATE '2023-01-01' OR kind = 'noise'

-- dialect: trino
UPDATE accounts SET balance = balance - 10.5 WHERE id = 7 AND flags[1] = 'x'

-- dialect: trino
SELECT count(*) FILTER (WHERE status = 'ok') * 100.0 / count(*) FROM requests

-- dialect: trino
SELECT x.a FROM (SELECT a, b + 1 AS c FROM t WHERE d LIKE '%x%') x WHERE x.c > 5 UNION ALL
SELECT z FROM u ORDER BY 1

-- dialect: trino
SELECT "odd name", t."select" FROM "My Table" t WHERE "odd name" = 'it''s'

-- dialect: trino
EXPLAIN SELECT a FROM t WHERE b = 3 LIMIT 5

-- dialect: trino
SELECT a FROM t FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00 UTC' WHERE b = 1

-- dialect: spark
SELECT /*+ BROADCAST(d) */ f.k, d.name FROM fact f JOIN dim d ON f.k = d.k WHERE f.day >=
'2024-01-01' AND d.kind IN ('a', 'b')

-- dialect: spark
MERGE INTO lake.demo.target t USING changes c ON t.id = c.id WHEN MATCHED AND c.op = 'D' THEN
DELETE WHEN MATCHED THEN UPDATE SET t.v = c.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id,
c.v)

-- dialect: spark
SELECT id, item FROM orders LATERAL VIEW explode(items) e AS item WHERE item > 3

-- dialect: spark
SELECT `odd name` FROM `db`.`t` WHERE a = "double" AND b = 10L

-- dialect: spark
INSERT OVERWRITE TABLE lake.demo.daily PARTITION (day = '2024-01-01') SELECT k, sum(v) FROM
lake.demo.events WHERE day = '2024-01-01' GROUP BY k

-- dialect: spark
CALL lake.system.rewrite_data_files(table => 'demo.events', options => map('a', '1'))

-- dialect: duckdb
SELECT k, avg(v) AS m FROM lake.demo.events WHERE ts > now() - INTERVAL '7 days' GROUP BY ALL
ORDER BY m DESC

-- dialect: duckdb
SELECT a, b FROM read_parquet('s3://bucket/x/*.parquet') WHERE c = 5

-- dialect: duckdb
FROM t SELECT a, b + 0.5 AS c WHERE d = .25

-- dialect: duckdb
SELECT a::DECIMAL(10, 2), b[1], {'k': c} FROM t QUALIFY row_number() OVER w = 1 WINDOW w AS
(PARTITION BY a ORDER BY b)

-- dialect: duckdb
CREATE TABLE copy AS SELECT * FROM t WHERE a BETWEEN 1 AND 5

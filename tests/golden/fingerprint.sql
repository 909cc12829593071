-- case: literals, case and layout do not matter
-- dialect: trino
select  A, Count(*) from Lake.Demo.Events where User_Id = 42 and kind = 'click'   group by a
-- template:
SELECT a, COUNT(*) FROM lake.demo.events WHERE user_id = ? AND kind = ? GROUP BY a

-- case: comments do not matter
-- dialect: trino
SELECT a /* first */ FROM t -- the table
WHERE b = 1 /* it's a 'trap' */
-- template:
SELECT a FROM t WHERE b = ?

-- case: aliases are numbered, their names do not matter
-- dialect: trino
SELECT o.o_orderkey AS k, sum(l.l_quantity) total FROM orders o JOIN lineitem AS l ON o.o_orderkey = l.l_orderkey GROUP BY o.o_orderkey HAVING sum(l.l_quantity) > 5 ORDER BY total DESC
-- template:
SELECT t1.o_orderkey AS c1, SUM(t2.l_quantity) AS c2 FROM orders AS t1 JOIN lineitem AS t2 ON t1.o_orderkey = t2.l_orderkey GROUP BY t1.o_orderkey HAVING SUM(t2.l_quantity) > ? ORDER BY c2 DESC

-- case: aliases keep their number through CTEs and derived tables
-- dialect: trino
WITH daily AS (SELECT day, sum(amount) AS revenue FROM sales GROUP BY day) SELECT d.day, revenue FROM daily d JOIN (SELECT max(revenue) AS top FROM daily) best ON d.revenue = best.top
-- template:
WITH w1 AS (SELECT day, SUM(amount) AS c1 FROM sales GROUP BY day) SELECT t1.day, c1 FROM w1 AS t1 JOIN (SELECT MAX(c1) AS c2 FROM w1) AS t2 ON t1.c1 = t2.c2

-- case: a column list of an alias names columns
-- dialect: trino
SELECT n FROM (VALUES (1, 'a'), (2, 'b')) AS pairs (n, word) WHERE word = 'a'
-- template:
SELECT c1 FROM (VALUES (?, ?)) AS t1(c1, c2) WHERE c2 = ?

-- case: an alias named like the column it hides is still an alias in ORDER BY
-- dialect: trino
SELECT upper(name) AS name FROM users ORDER BY name
-- template:
SELECT UPPER(name) AS c1 FROM users ORDER BY c1

-- case: GROUP BY of a name that a column has means the column
-- dialect: duckdb
SELECT upper(name) AS name FROM users GROUP BY name
-- template:
SELECT UPPER(name) AS c1 FROM users GROUP BY name

-- case: GROUP BY of an alias means the alias
-- dialect: duckdb
SELECT upper(name) AS big FROM users GROUP BY big
-- template:
SELECT UPPER(name) AS c1 FROM users GROUP BY c1

-- case: real names that look canonical are quoted
-- dialect: trino
SELECT t1.c1, x.c2 FROM t1 JOIN other x ON t1.id = x.id
-- template:
SELECT "t1"."c1", t1."c2" FROM "t1" JOIN other AS t1 ON "t1".id = t1.id

-- case: the length of an IN list does not matter
-- dialect: trino
SELECT a FROM t WHERE b IN (1, 2, 3) AND c NOT IN ('x', 'y')
-- template:
SELECT a FROM t WHERE b IN (?) AND c NOT IN (?)

-- case: different items of an IN list stay
-- dialect: trino
SELECT a FROM t WHERE b IN (1, c, 2, d + 1, 3, c)
-- template:
SELECT a FROM t WHERE b IN (?, c, d + ?)

-- case: an IN list of dates, signed numbers and NULL is a list of literals
-- dialect: trino
SELECT a FROM t WHERE b IN (DATE '2024-01-01', DATE '2024-01-02') AND c IN (-1, +2, NULL)
-- template:
SELECT a FROM t WHERE b IN (DATE ?) AND c IN (?)

-- case: an IN with a subquery is not a list
-- dialect: trino
SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d = 3)
-- template:
SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d = ?)

-- case: the number of VALUES rows does not matter
-- dialect: trino
INSERT INTO t (a, b, c) VALUES (1, 'x', NULL), (2, NULL, true), (-3, 'z', false)
-- template:
INSERT INTO t(a, b, c) VALUES (?, ?, ?)

-- case: rows of another shape stay
-- dialect: trino
INSERT INTO t VALUES (1, now()), (2, 'x'), (3, now())
-- template:
INSERT INTO t VALUES (?, NOW()), (?, ?)

-- case: NULL and TRUE are literals as values and words as predicates
-- dialect: trino
SELECT coalesce(a, NULL), CASE WHEN b IS NULL THEN NULL ELSE true END FROM t WHERE c IS NOT NULL AND d = NULL AND e IS TRUE AND f = FALSE
-- template:
SELECT COALESCE(a, ?), CASE WHEN b IS NULL THEN ? ELSE ? END FROM t WHERE c IS NOT NULL AND d = ? AND e IS TRUE AND f = ?

-- case: a sign belongs to the number, a minus between operands does not
-- dialect: trino
SELECT -1, a - 1, a * -1, (-2), b -3 FROM t WHERE c > -4 AND d BETWEEN -5 AND -6
-- template:
SELECT ?, a - ?, a * ?, (?), b - ? FROM t WHERE c > ? AND d BETWEEN ? AND ?

-- case: positions are no literals
-- dialect: trino
SELECT a, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, a LIMIT 10 OFFSET 5
-- template:
SELECT a, COUNT(*) FROM t GROUP BY 1 ORDER BY 2 DESC, a LIMIT ? OFFSET ?

-- case: LIMIT, samples and frames hold literals
-- dialect: trino
SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t TABLESAMPLE BERNOULLI (10) LIMIT 7
-- template:
SELECT SUM(a) OVER (ORDER BY b ROWS BETWEEN ? PRECEDING AND CURRENT ROW) FROM t TABLESAMPLE BERNOULLI(?) LIMIT ?

-- case: parameters of types are literals
-- dialect: trino
SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS VARCHAR(5)) FROM t
-- template:
SELECT CAST(a AS DECIMAL(?, ?)), CAST(b AS VARCHAR(?)) FROM t

-- case: a unit outside the string is a word
-- dialect: trino
SELECT a FROM t WHERE b > current_date - INTERVAL '7' DAY
-- template:
SELECT a FROM t WHERE b > CURRENT_DATE - INTERVAL ? DAY

-- case: a unit inside the string is kept, its number is not
-- dialect: duckdb
SELECT a FROM t WHERE b > now() - INTERVAL '7 days' AND c < INTERVAL '1 hour 30 minutes'
-- template:
SELECT a FROM t WHERE b > NOW() - INTERVAL '? days' AND c < INTERVAL '? hour ? minutes'

-- case: arguments of functions are literals
-- dialect: trino
SELECT date_trunc('month', ts), substr(a, 1, 2), b[1], json_extract(j, '$.x') FROM t
-- template:
SELECT DATE_TRUNC(?, ts), SUBSTR(a, ?, ?), b[?], JSON_EXTRACT(j, ?) FROM t

-- case: a table function's arguments say what is read
-- dialect: duckdb
SELECT a FROM read_parquet('s3://bucket/one/*.parquet') WHERE b = 1
-- template:
SELECT a FROM READ_PARQUET('s3://bucket/one/*.parquet') WHERE b = ?

-- case: a file is a table
-- dialect: duckdb
SELECT a FROM 'data/one.parquet' WHERE b = 1
-- template:
SELECT a FROM 'data/one.parquet' WHERE b = ?

-- case: time travel says what is read
-- dialect: trino
SELECT a FROM t FOR VERSION AS OF 123 WHERE b = 1
-- template:
SELECT a FROM t FOR VERSION AS OF 123 WHERE b = ?

-- case: a timestamp to travel to says what is read
-- dialect: spark
SELECT a FROM t TIMESTAMP AS OF '2024-01-01' WHERE b = 1
-- template:
SELECT a FROM t TIMESTAMP AS OF '2024-01-01' WHERE b = ?

-- case: dynamic SQL is its own meaning
-- dialect: trino
EXECUTE IMMEDIATE 'SELECT * FROM t WHERE a = 1'
-- template:
EXECUTE immediate 'SELECT * FROM t WHERE a = 1'

-- case: quoted names fold where the engine folds them
-- dialect: trino
SELECT "Name", "odd name" FROM "Users" WHERE "select" = 1
-- template:
SELECT name, "odd name" FROM users WHERE "select" = ?

-- case: quoted names stay where the engine keeps them
-- dialect: snowflake
SELECT name, "name", "NAME" FROM users
-- template:
SELECT name, "name", name FROM users

-- case: backticks and double quotes of Spark
-- dialect: spark
SELECT `Name` FROM `db`.`t` WHERE a = "text" AND b = 'text'
-- template:
SELECT name FROM db.t WHERE a = ? AND b = ?

-- case: spellings of operators
-- dialect: trino
SELECT a FROM t WHERE b != 1 AND c <> 2
-- template:
SELECT a FROM t WHERE b <> ? AND c <> ?

-- case: a hint is no comment
-- dialect: spark
SELECT /*+ BROADCAST(b) */ a.x FROM a JOIN b ON a.id = b.id
-- template:
SELECT /*+ BROADCAST(b) */ a.x FROM a JOIN b ON a.id = b.id

-- case: named windows are aliases
-- dialect: trino
SELECT rank() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b)
-- template:
SELECT RANK() OVER n1 FROM t WINDOW n1 AS (PARTITION BY a ORDER BY b)

-- case: a merge
-- dialect: spark
MERGE INTO target AS t USING source s ON t.id = s.id WHEN MATCHED AND s.op = 'D' THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 5)
-- template:
MERGE INTO target AS t1 USING source AS t2 ON t1.id = t2.id WHEN MATCHED AND t2.op = ? THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (t2.id, ?)

-- case: an update
-- dialect: trino
UPDATE accounts SET balance = balance - 10, touched = now() WHERE id = 7
-- template:
UPDATE accounts SET balance = balance - ?, touched = NOW() WHERE id = ?

-- case: explain shows the statement
-- dialect: trino
EXPLAIN (TYPE DISTRIBUTED) SELECT a x FROM t WHERE b = 1
-- template:
EXPLAIN (TYPE DISTRIBUTED) SELECT a AS c1 FROM t WHERE b = ?

-- case: a command is told by its words
-- dialect: spark
CALL lake.system.expire_snapshots(table => 'demo.events', retain_last => 5)
-- template:
CALL lake.system.expire_snapshots(TABLE => ?, retain_last => ?)

-- case: unnest and lateral views name columns
-- dialect: spark
SELECT id, item FROM orders LATERAL VIEW explode(items) exploded AS item WHERE item > 3
-- template:
SELECT id, c1 FROM orders LATERAL VIEW EXPLODE(items) t1 AS c1 WHERE c1 > ?

-- case: a lateral alias of Spark
-- dialect: spark
SELECT price * 2 AS doubled, doubled + 1 AS more FROM t
-- template:
SELECT price * ? AS c1, c1 + ? AS c2 FROM t

-- case: the same text without lateral aliases names a column
-- dialect: trino
SELECT price * 2 AS doubled, doubled + 1 AS more FROM t
-- template:
SELECT price * ? AS c1, doubled + ? AS c2 FROM t

-- case: recursion
-- dialect: trino
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT max(i) FROM n
-- template:
WITH RECURSIVE w1(c1) AS (SELECT ? UNION ALL SELECT c1 + ? FROM w1 WHERE c1 < ?) SELECT MAX(c1) FROM w1

-- case: a set operation takes its names from the first branch
-- dialect: trino
SELECT a AS x FROM t UNION ALL SELECT b AS y FROM u ORDER BY x
-- template:
SELECT a AS c1 FROM t UNION ALL SELECT b AS c2 FROM u ORDER BY c1

-- case: what does not parse is still evened out
-- dialect: trino
SELECT   a, 5 FROM t WHERE WHERE b = 'x'
-- template:
SELECT a, ? FROM t WHERE WHERE b = ?
-- error: Required keyword: 'this' missing for Where at line 1, column 32, near 'WHERE'

-- case: several statements
-- dialect: trino
SELECT 1; DELETE FROM t WHERE a = 2;
-- template:
SELECT ?; DELETE FROM t WHERE a = ?;
-- error: one statement at a time: found 2

-- case: NULLS LAST, which a translation to Spark adds, is what Trino does unasked
-- dialect: spark
SELECT a FROM t ORDER BY a NULLS LAST, b DESC NULLS LAST LIMIT 3
-- template:
SELECT a FROM t ORDER BY a, b DESC LIMIT ?

-- case: the order of a window is evened out alike
-- dialect: spark
SELECT row_number() OVER (PARTITION BY a ORDER BY b NULLS LAST) FROM t
-- template:
SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t

-- case: NULLS FIRST is left out where the dialect does it unasked
-- dialect: snowflake
SELECT a FROM t ORDER BY a NULLS LAST, b DESC NULLS FIRST
-- template:
SELECT a FROM t ORDER BY a, b DESC

-- case: NULLS FIRST against the dialect's own order is part of the template
-- dialect: duckdb
SELECT a FROM t ORDER BY a NULLS FIRST, b DESC
-- template:
SELECT a FROM t ORDER BY a NULLS FIRST, b DESC

-- case: IGNORE NULLS is no order
-- dialect: trino
SELECT first_value(x) IGNORE NULLS OVER (ORDER BY y) FROM t
-- template:
SELECT FIRST_VALUE(x) IGNORE NULLS OVER (ORDER BY y) FROM t

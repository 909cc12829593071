-- case: roles of a single table
-- dialect: trino
SELECT a, sum(b) FROM t WHERE c = 1 AND d > 2 AND e IN (1, 2) AND f LIKE 'x%' AND g IS NULL AND h <> 3 AND i BETWEEN 1 AND 2 GROUP BY a ORDER BY a
-- tables: t
-- t a: group, order, project
-- t b: project
-- t c: filter_eq
-- t d: filter_range
-- t e: filter_in
-- t f: filter_range
-- t g: filter_eq
-- t h: filter_range
-- t i: filter_range

-- case: join in ON, filters beside it
-- dialect: trino
SELECT o.x FROM orders o LEFT JOIN lineitem l ON o.id = l.order_id AND l.qty > 5 AND o.kind = 'a' WHERE l.flag
-- tables: lineitem, orders
-- lineitem flag: filter_eq
-- lineitem order_id: join
-- lineitem qty: filter_range
-- orders id: join
-- orders kind: filter_eq
-- orders x: project

-- case: join in WHERE
-- dialect: trino
SELECT o.x FROM orders o, lineitem l WHERE o.id = l.order_id AND l.a < l.b AND o.day >= l.day
-- tables: lineitem, orders
-- lineitem a: filter_range
-- lineitem b: filter_range
-- lineitem day: join
-- lineitem order_id: join
-- orders day: join
-- orders id: join
-- orders x: project

-- case: USING joins both sides
-- dialect: trino
SELECT a.x, b.y, k FROM a JOIN b USING (k)
-- tables: a, b
-- a k: join, project
-- a x: project
-- b k: join
-- b y: project

-- case: a self join
-- dialect: trino
SELECT e.name FROM employees e JOIN employees m ON e.manager_id = m.id
-- tables: employees
-- employees id: join
-- employees manager_id: join
-- employees name: project

-- case: a correlated subquery joins
-- dialect: trino
SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 100)
-- tables: customers, orders
-- customers id: join
-- customers name: project
-- orders customer_id: join
-- orders total: filter_range

-- case: IN with a subquery
-- dialect: trino
SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d = 1)
-- tables: t, u
-- t a: project
-- t b: filter_in
-- u c: project
-- u d: filter_eq

-- case: a filter goes through a derived table to the column
-- dialect: trino
SELECT day, n FROM (SELECT date_trunc('day', ts) AS day, count(*) AS n FROM events GROUP BY 1) WHERE day > DATE '2024-01-01' AND n > 5
-- tables: events
-- events ts: filter_range, group, project

-- case: a filter goes through CTEs and renames
-- dialect: trino
WITH a AS (SELECT id AS x, v FROM t), b AS (SELECT x AS y, v FROM a) SELECT v FROM b WHERE y = 3
-- tables: t
-- t id: filter_eq, project
-- t v: project

-- case: a filter on a set operation goes to every branch
-- dialect: trino
SELECT x FROM (SELECT a AS x FROM t UNION ALL SELECT b FROM u) WHERE x = 1
-- tables: t, u
-- t a: filter_eq, project
-- u b: filter_eq, project

-- case: the name of a CTE is no table, but the table it hides is one inside it
-- dialect: trino
WITH orders AS (SELECT id FROM lake.sales.orders) SELECT id FROM orders
-- tables: lake.sales.orders
-- lake.sales.orders id: project

-- case: HAVING on an aggregate filters no rows
-- dialect: trino
SELECT a FROM t GROUP BY a HAVING sum(b) > 5 AND a > 3
-- tables: t
-- t a: filter_range, group, project
-- t b: project

-- case: windows group and order
-- dialect: trino
SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC) AS rn, c FROM t
-- tables: t
-- t a: group
-- t b: order
-- t c: project

-- case: positions and aliases stand for their items
-- dialect: duckdb
SELECT date_trunc('day', ts) AS day, upper(kind) AS k, count(*) FROM events GROUP BY 1, k ORDER BY day, 3
-- tables: events
-- events kind: group, project
-- events ts: group, order, project

-- case: GROUP BY ALL
-- dialect: duckdb
SELECT a, b + c AS d, sum(e) FROM t GROUP BY ALL ORDER BY ALL
-- tables: t
-- t a: group, order, project
-- t b: group, order, project
-- t c: group, order, project
-- t e: project

-- case: an unqualified column of a join stays open
-- dialect: trino
SELECT a.x, y FROM a JOIN b ON a.id = b.id WHERE z = 1
-- tables: a, b
-- ? y: project
-- ? z: filter_eq
-- a id: join
-- a x: project
-- b id: join

-- case: a qualified use elsewhere settles an unqualified one
-- dialect: trino
SELECT a.x, b.y FROM a JOIN b ON a.id = b.id WHERE y = 1 GROUP BY x
-- tables: a, b
-- a id: join
-- a x: group, project
-- b id: join
-- b y: filter_eq, project

-- case: a derived table with other names leaves one candidate
-- dialect: trino
SELECT x, n FROM t JOIN (SELECT id, count(*) AS n FROM u GROUP BY id) g ON t.id = g.id WHERE day = 1
-- tables: t, u
-- t day: filter_eq
-- t id: join
-- t x: project
-- u id: group, join, project

-- case: prefixes tell tables apart when they explain everything
-- dialect: trino
SELECT c_name, sum(o_totalprice) FROM customer, orders WHERE c_custkey = o_custkey AND o_orderdate > DATE '2024-01-01' GROUP BY c_name
-- tables: customer, orders
-- customer c_custkey: join
-- customer c_name: group, project
-- orders o_custkey: join
-- orders o_orderdate: filter_range
-- orders o_totalprice: project

-- case: one column without a prefix and the prefixes tell nothing
-- dialect: trino
SELECT c_name, total FROM customer, orders WHERE c_custkey = o_custkey
-- tables: customer, orders
-- ? c_custkey: join
-- ? c_name: project
-- ? o_custkey: join
-- ? total: project

-- case: a foreign key's name is no prefix
-- dialect: trino
SELECT user_id, order_date FROM users, orders
-- tables: orders, users
-- ? order_date: project
-- ? user_id: project

-- case: prefixes find the outer table of a correlated subquery
-- dialect: trino
SELECT sum(l_price) FROM lineitem, part WHERE p_partkey = l_partkey AND l_qty < (SELECT avg(l_qty) FROM lineitem WHERE l_partkey = p_partkey)
-- tables: lineitem, part
-- lineitem l_partkey: join
-- lineitem l_price: project
-- lineitem l_qty: filter_range, project
-- part p_partkey: join

-- case: an unqualified name in a subquery is the inner table's
-- dialect: trino
SELECT id FROM a WHERE a.id IN (SELECT id FROM b WHERE x = 1)
-- tables: a, b
-- a id: filter_in, project
-- b id: project
-- b x: filter_eq

-- case: a star names no column without a schema
-- dialect: trino
SELECT * FROM t WHERE a = 1
-- tables: t
-- t *: project
-- t a: filter_eq

-- case: a star of a derived table passes on what is used
-- dialect: trino
SELECT a, b FROM (SELECT * FROM t) WHERE c = 1
-- tables: t
-- t a: project
-- t b: project
-- t c: filter_eq

-- case: a star in EXISTS reads nothing
-- dialect: trino
SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.b = t.b)
-- tables: t, u
-- t a: project
-- t b: join
-- u b: join

-- case: COUNT(*) reads nothing
-- dialect: trino
SELECT count(*) FROM t
-- tables: t

-- case: insert from a query
-- dialect: trino
INSERT INTO lake.demo.target (x, y) SELECT a, b FROM source WHERE c = 1
-- tables: lake.demo.target, source
-- source a: project
-- source b: project
-- source c: filter_eq

-- case: create table as
-- dialect: trino
CREATE TABLE lake.demo.copy AS SELECT a FROM lake.demo.events WHERE day = DATE '2024-01-01'
-- tables: lake.demo.copy, lake.demo.events
-- lake.demo.events a: project
-- lake.demo.events day: filter_eq

-- case: update reads the right sides
-- dialect: trino
UPDATE t SET a = b + 1 WHERE c = 2 AND d IN (SELECT e FROM u)
-- tables: t, u
-- t b: project
-- t c: filter_eq
-- t d: filter_in
-- u e: project

-- case: delete
-- dialect: spark
DELETE FROM lake.demo.events WHERE day < DATE '2024-01-01' AND kind = 'x'
-- tables: lake.demo.events
-- lake.demo.events day: filter_range
-- lake.demo.events kind: filter_eq

-- case: merge
-- dialect: spark
MERGE INTO target t USING (SELECT id, max(v) AS v FROM changes WHERE op <> 'D' GROUP BY id) c ON t.id = c.id WHEN MATCHED AND t.locked = false THEN UPDATE SET t.v = c.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id, c.v)
-- tables: changes, target
-- changes id: group, join, project
-- changes op: filter_range
-- changes v: project
-- target id: join
-- target locked: filter_eq

-- case: drop, alter, describe name tables
-- dialect: trino
ALTER TABLE lake.demo.events ADD COLUMN extra varchar
-- tables: lake.demo.events

-- case: a schema is no table
-- dialect: trino
CREATE SCHEMA lake.demo
-- tables:

-- case: use is no table
-- dialect: spark
USE lake.demo
-- tables:

-- case: explain
-- dialect: trino
EXPLAIN ANALYZE SELECT a FROM t WHERE b = 1
-- tables: t
-- t a: project
-- t b: filter_eq

-- case: fields of a struct
-- dialect: trino
SELECT address.city, t.address.zip FROM t WHERE address.country = 'x'
-- tables: t
-- t address: filter_eq, project

-- case: parameters of a lambda are no columns
-- dialect: trino
SELECT transform(xs, x -> x + y) FROM t
-- tables: t
-- t xs: project
-- t y: project

-- case: unnest names columns of its own
-- dialect: trino
SELECT id, item FROM orders CROSS JOIN UNNEST(items) AS u (item) WHERE item > 3
-- tables: orders
-- orders id: project
-- orders items: project

-- case: lateral view names columns of its own
-- dialect: spark
SELECT id, item FROM orders LATERAL VIEW explode(items) e AS item
-- tables: orders
-- orders id: project
-- orders items: project

-- case: lateral join sees its neighbour
-- dialect: trino
SELECT t.a, l.m FROM t CROSS JOIN LATERAL (SELECT max(u.v) AS m FROM u WHERE u.k = t.k) l
-- tables: t, u
-- t a: project
-- t k: join
-- u k: join
-- u v: project

-- case: a table function has no base columns
-- dialect: duckdb
SELECT r.i FROM range(10) AS r(i) WHERE r.i > 3
-- tables:

-- case: names of arguments are no columns
-- dialect: duckdb
SELECT a FROM read_csv('x.csv', header = true) WHERE b = 1
-- tables:

-- case: a case in the select list projects
-- dialect: trino
SELECT sum(CASE WHEN a = 1 THEN b ELSE 0 END) FROM t
-- tables: t
-- t a: project
-- t b: project

-- case: a filter on an aggregate projects
-- dialect: trino
SELECT count(*) FILTER (WHERE a > 1) FROM t
-- tables: t
-- t a: project

-- case: DISTINCT ON groups
-- dialect: duckdb
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, c
-- tables: t
-- t a: group, order, project
-- t b: project
-- t c: order

-- case: recursion ends
-- dialect: trino
WITH RECURSIVE tree (id, parent) AS (SELECT id, parent_id FROM nodes WHERE parent_id IS NULL UNION ALL SELECT n.id, n.parent_id FROM nodes n JOIN tree ON n.parent_id = tree.id) SELECT id FROM tree WHERE parent = 3
-- tables: nodes
-- nodes id: join, project
-- nodes parent_id: filter_eq, join, project

-- case: qualify filters on a window's result
-- dialect: snowflake
SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1
-- tables: T
-- T A: project
-- T B: group
-- T C: order

-- case: struct and map keys are no columns
-- dialect: duckdb
SELECT {'key': a} FROM t
-- tables: t
-- t a: project

-- case: order by an expression of a column that is not selected
-- dialect: trino
SELECT a FROM t ORDER BY lower(b)
-- tables: t
-- t a: project
-- t b: order

-- case: metadata tables keep their name
-- dialect: trino
SELECT snapshot_id FROM lake.demo."events$snapshots"
-- tables: lake.demo.events$snapshots
-- lake.demo.events$snapshots snapshot_id: project

-- What five engines are sent in a day, one statement per paragraph, written as templates: queries, loads,
-- definitions, maintenance, administration. Markers stand for what differs from run to run:
-- {int} {num} {text} values; {ints} {texts} lists of any length; {day} {ts} the inside of a quoted date or
-- timestamp; {a} {b} {c} {d} alias names. benchmarks/templates.py fills them in.

-- dialect: trino
SELECT {a}.region, count(*) AS {b}, approx_distinct({a}.user_id) FROM lake.web.page_view {a} WHERE {a}.seen_at >= TIMESTAMP '{ts}' AND {a}.country IN ({texts}) GROUP BY {a}.region ORDER BY {b} DESC LIMIT {int}

-- dialect: trino
WITH {a} AS (SELECT order_id, sum(price * quantity) AS {b} FROM lake.shop.order_line WHERE ship_date BETWEEN DATE '{day}' AND DATE '{day}' GROUP BY order_id) SELECT o.customer_id, max({a}.{b}) FROM lake.shop.orders o JOIN {a} ON {a}.order_id = o.order_id WHERE o.status <> {text} GROUP BY o.customer_id HAVING max({a}.{b}) > {num}

-- dialect: trino
SELECT device, date_trunc('hour', at) AS {a}, avg(celsius) FROM lake.iot.reading WHERE at > date_add('day', -{int}, TIMESTAMP '{ts}') AND sensor_id = {int} GROUP BY 1, 2 ORDER BY 2

-- dialect: trino
SELECT * FROM (SELECT name, amount, row_number() OVER (PARTITION BY region ORDER BY amount DESC) AS {a} FROM lake.shop.sale WHERE booked_on = DATE '{day}') {b} WHERE {a} <= {int}

-- dialect: trino
SELECT coalesce(p.segment, {text}) AS {a}, cast(sum(p.paid) AS decimal(18, 2)) FROM lake.crm.payment p LEFT JOIN lake.crm.client c ON p.client_id = c.id AND c.active = true WHERE p.paid BETWEEN {num} AND {num} GROUP BY 1

-- dialect: trino
SELECT t.word, count(*) FROM lake.text.post {a} CROSS JOIN UNNEST(split(lower({a}.body), ' ')) AS t (word) WHERE length(t.word) > {int} GROUP BY t.word

-- dialect: trino
SELECT id FROM lake.shop.orders FOR VERSION AS OF 4711 WHERE total > {num}

-- dialect: trino
SELECT approx_percentile(latency_ms, 0.95) FROM lake.ops.request WHERE status_code >= {int} AND path LIKE {text} AND NOT internal

-- dialect: trino
SELECT {a}.id FROM lake.shop.orders {a} WHERE EXISTS (SELECT 1 FROM lake.shop.refund {b} WHERE {b}.order_id = {a}.id AND {b}.amount > {num}) AND {a}.placed_on >= DATE '{day}'

-- dialect: trino
SELECT json_extract_scalar(payload, '$.kind') AS {a}, count(*) FROM lake.events.raw WHERE day = {text} GROUP BY json_extract_scalar(payload, '$.kind')

-- dialect: trino
SELECT city, zip FROM lake.geo.place WHERE zip IN ({texts}) UNION ALL SELECT city, zip FROM lake.geo.old_place WHERE closed_on < DATE '{day}'

-- dialect: trino
SELECT region, product, sum(amount) FROM lake.shop.sale WHERE year = {int} GROUP BY GROUPING SETS ((region), (product), (region, product))

-- dialect: trino
INSERT INTO lake.shop.daily_total SELECT booked_on, sum(amount) FROM lake.shop.sale WHERE booked_on = DATE '{day}' GROUP BY booked_on

-- dialect: trino
INSERT INTO lake.crm.tag (client_id, label, weight) VALUES ({int}, {text}, {num})

-- dialect: trino
MERGE INTO lake.crm.client {a} USING lake.stage.client {b} ON {a}.id = {b}.id WHEN MATCHED AND {b}.deleted_at IS NOT NULL THEN DELETE WHEN MATCHED THEN UPDATE SET email = {b}.email WHEN NOT MATCHED THEN INSERT (id, email) VALUES ({b}.id, {b}.email)

-- dialect: trino
DELETE FROM lake.events.raw WHERE day < {text} AND source = {text}

-- dialect: trino
UPDATE lake.crm.client SET tier = {text} WHERE id = {int}

-- dialect: trino
CREATE TABLE lake.tmp.top_client WITH (format = 'PARQUET', partitioning = ARRAY['month(joined_on)']) AS SELECT id, joined_on FROM lake.crm.client WHERE revenue > {num}

-- dialect: trino
CREATE TABLE IF NOT EXISTS lake.iot.alarm (id bigint, raised_at timestamp(6) with time zone, note varchar) WITH (partitioning = ARRAY['day(raised_at)'])

-- dialect: trino
CREATE OR REPLACE VIEW lake.shop.open_order AS SELECT id, total FROM lake.shop.orders WHERE status = 'open'

-- dialect: trino
ALTER TABLE lake.shop.orders EXECUTE optimize(file_size_threshold => '128MB') WHERE placed_on >= DATE '{day}'

-- dialect: trino
ALTER TABLE lake.shop.orders EXECUTE expire_snapshots(retention_threshold => '7d')

-- dialect: trino
ALTER TABLE lake.shop.orders ADD COLUMN channel varchar

-- dialect: trino
DROP TABLE IF EXISTS lake.tmp.top_client

-- dialect: trino
ANALYZE lake.shop.orders WITH (columns = ARRAY['id', 'total'])

-- dialect: trino
SHOW TABLES FROM lake.shop LIKE {text}

-- dialect: trino
DESCRIBE lake.shop.orders

-- dialect: trino
EXPLAIN ANALYZE SELECT count(*) FROM lake.shop.orders WHERE total > {num}

-- dialect: trino
SET SESSION query_max_run_time = {text}

-- dialect: trino
CALL lake.system.rollback_to_snapshot('shop', 'orders', {int})

-- dialect: trino
SELECT committed_at, operation FROM lake.shop."orders$snapshots" WHERE committed_at > TIMESTAMP '{ts} UTC' ORDER BY committed_at DESC

-- dialect: trino
PREPARE find_order FROM SELECT total FROM lake.shop.orders WHERE id = ?

-- dialect: trino
SELECT max_by(price, quoted_at), {text} AS {a} FROM lake.market.quote WHERE ticker = {text} AND quoted_at < now() - INTERVAL '15' MINUTE

-- dialect: spark
SELECT /*+ BROADCAST({b}) */ {a}.store_id, {b}.city, sum({a}.amount) AS {c} FROM lake.retail.receipt {a} JOIN lake.retail.store {b} ON {a}.store_id = {b}.id WHERE {a}.day = '{day}' GROUP BY {a}.store_id, {b}.city

-- dialect: spark
SELECT customer, collect_set(product) AS {a} FROM lake.retail.basket WHERE day BETWEEN '{day}' AND '{day}' AND price > {num} GROUP BY customer

-- dialect: spark
SELECT {a}.id, tag FROM lake.cms.article {a} LATERAL VIEW explode({a}.tags) t AS tag WHERE {a}.published_at >= TIMESTAMP '{ts}' AND tag IN ({texts})

-- dialect: spark
SELECT window(at, '10 minutes') AS {a}, count(*) FROM lake.iot.reading WHERE at > current_timestamp() - INTERVAL 2 HOURS AND sensor = {text} GROUP BY window(at, '10 minutes')

-- dialect: spark
SELECT date_format(at, 'yyyy-MM') AS {a}, percentile_approx(fare, 0.5) FROM lake.taxi.trip WHERE zone_id IN ({ints}) GROUP BY date_format(at, 'yyyy-MM')

-- dialect: spark
SELECT * FROM lake.retail.stock VERSION AS OF 99123 WHERE sku = {text}

-- dialect: spark
SELECT transform(lines, x -> x.price * {num}) FROM lake.shop.cart WHERE size(lines) > {int} AND owner RLIKE {text}

-- dialect: spark
SELECT a.k, b.v FROM lake.x.left_side a LEFT SEMI JOIN lake.x.right_side b ON a.k = b.k AND b.flag = {int} WHERE a.part = '{day}'

-- dialect: spark
SELECT cube_region, cube_kind, count(DISTINCT user_id) FROM lake.web.hit WHERE day >= date_sub(DATE'{day}', {int}) GROUP BY CUBE (cube_region, cube_kind)

-- dialect: spark
SELECT `weird name`, get_json_object(body, '$.a.b') FROM lake.raw.`2024_dump` WHERE `weird name` = {text}

-- dialect: spark
WITH {a} AS (SELECT user_id, lag(at) OVER (PARTITION BY user_id ORDER BY at) AS {b}, at FROM lake.web.hit WHERE day = '{day}') SELECT count_if(unix_timestamp(at) - unix_timestamp({b}) > {int}) FROM {a}

-- dialect: spark
SELECT id FROM lake.crm.client WHERE name <=> {text} OR email ILIKE {text}

-- dialect: spark
INSERT OVERWRITE TABLE lake.mart.daily PARTITION (day = '{day}') SELECT shop, sum(amount) FROM lake.retail.receipt WHERE day = '{day}' GROUP BY shop

-- dialect: spark
INSERT INTO lake.ops.mark VALUES ({int}, {text}, TIMESTAMP '{ts}')

-- dialect: spark
MERGE INTO lake.retail.stock {a} USING (SELECT sku, sum(delta) AS {c} FROM lake.retail.move WHERE day = '{day}' GROUP BY sku) {b} ON {a}.sku = {b}.sku WHEN MATCHED THEN UPDATE SET {a}.level = {a}.level + {b}.{c} WHEN NOT MATCHED THEN INSERT (sku, level) VALUES ({b}.sku, {b}.{c})

-- dialect: spark
UPDATE lake.retail.stock SET level = {int}, touched_at = current_timestamp() WHERE sku = {text}

-- dialect: spark
DELETE FROM lake.web.hit WHERE day < '{day}' AND bot = true

-- dialect: spark
CREATE TABLE lake.mart.fact (id BIGINT, amount DECIMAL(18, 2), at TIMESTAMP, country STRING) USING iceberg PARTITIONED BY (days(at), bucket(16, id)) TBLPROPERTIES ('write.distribution-mode' = 'hash')

-- dialect: spark
CREATE OR REPLACE TEMPORARY VIEW recent AS SELECT * FROM lake.web.hit WHERE day >= '{day}'

-- dialect: spark
CREATE TABLE lake.tmp.sample USING iceberg AS SELECT * FROM lake.web.hit TABLESAMPLE (5 PERCENT) WHERE country = {text}

-- dialect: spark
ALTER TABLE lake.mart.fact WRITE ORDERED BY country, at

-- dialect: spark
ALTER TABLE lake.mart.fact SET TBLPROPERTIES ('read.split.target-size' = '268435456')

-- dialect: spark
ALTER TABLE lake.mart.fact ADD COLUMNS (channel STRING COMMENT 'where it was sold')

-- dialect: spark
CALL lake.system.rewrite_data_files(table => 'mart.fact', strategy => 'sort', sort_order => 'country ASC, at ASC')

-- dialect: spark
CALL lake.system.expire_snapshots(table => 'mart.fact', older_than => TIMESTAMP '{ts}', retain_last => {int})

-- dialect: spark
CALL lake.system.remove_orphan_files(table => 'mart.fact', dry_run => true)

-- dialect: spark
DROP TABLE lake.tmp.sample PURGE

-- dialect: spark
SHOW PARTITIONS lake.mart.daily

-- dialect: spark
DESCRIBE TABLE EXTENDED lake.mart.fact

-- dialect: spark
EXPLAIN FORMATTED SELECT country, count(*) FROM lake.mart.fact WHERE at > TIMESTAMP '{ts}' GROUP BY country

-- dialect: spark
SET spark.sql.shuffle.partitions = 64

-- dialect: spark
CACHE TABLE lake.mart.daily

-- dialect: spark
REFRESH TABLE lake.mart.daily

-- dialect: spark
ANALYZE TABLE lake.mart.fact COMPUTE STATISTICS FOR ALL COLUMNS

-- dialect: spark
USE lake.mart

-- dialect: duckdb
SELECT {a}.carrier, count(*) FILTER (WHERE {a}.delay > {int}) AS {b} FROM lake.air.flight {a} WHERE {a}.day >= DATE '{day}' GROUP BY ALL ORDER BY {b} DESC

-- dialect: duckdb
FROM lake.air.flight SELECT origin, avg(delay) WHERE carrier IN ({texts}) GROUP BY origin

-- dialect: duckdb
SELECT * EXCLUDE (raw) FROM lake.log.line WHERE at > now() - INTERVAL '2 days' AND level = {text} LIMIT {int}

-- dialect: duckdb
SELECT name, list_filter(scores, x -> x > {num}) FROM lake.game.player WHERE joined_on = DATE '{day}'

-- dialect: duckdb
SELECT {a}.id, {b}.price FROM lake.market.trade {a} ASOF JOIN lake.market.quote {b} ON {a}.ticker = {b}.ticker AND {a}.at >= {b}.at WHERE {a}.ticker = {text}

-- dialect: duckdb
SELECT year(at) AS {a}, quantile_cont(amount, 0.9) FROM lake.shop.sale WHERE amount BETWEEN {num} AND {num} GROUP BY {a}

-- dialect: duckdb
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY at DESC) AS {a} FROM lake.web.hit WHERE at::DATE = DATE '{day}') WHERE {a} = 1

-- dialect: duckdb
SELECT user_id, count(*) FROM lake.web.hit WHERE path LIKE {text} GROUP BY user_id HAVING count(*) > {int} QUALIFY rank() OVER (ORDER BY count(*) DESC) <= {int}

-- dialect: duckdb
PIVOT lake.shop.sale ON region USING sum(amount) GROUP BY product

-- dialect: duckdb
SELECT unnest(tags) AS {a}, count(*) FROM lake.cms.article WHERE author_id = {int} GROUP BY {a}

-- dialect: duckdb
SELECT struct_pack(x := lon, y := lat) AS {a} FROM lake.geo.place WHERE lon > {num} AND lat < {num}

-- dialect: duckdb
WITH RECURSIVE {a} AS (SELECT id, parent_id, 0 AS depth FROM lake.org.unit WHERE id = {int} UNION ALL SELECT u.id, u.parent_id, {a}.depth + 1 FROM lake.org.unit u JOIN {a} ON u.parent_id = {a}.id) SELECT max(depth) FROM {a}

-- dialect: duckdb
SELECT count(*) FROM read_parquet('s3://bucket/raw/*.parquet') WHERE size_kb > {int}

-- dialect: duckdb
SELECT * FROM lake.shop.sale USING SAMPLE 10 PERCENT (bernoulli)

-- dialect: duckdb
SELECT {a}.*, {b}.label FROM lake.x.fact {a} POSITIONAL JOIN lake.x.label {b} WHERE {a}.v <> {num}

-- dialect: duckdb
INSERT INTO note (id, body, at) VALUES ({int}, {text}, TIMESTAMP '{ts}') ON CONFLICT DO NOTHING

-- dialect: duckdb
INSERT INTO mart.daily BY NAME SELECT day, sum(v) AS v FROM lake.x.fact WHERE day = DATE '{day}' GROUP BY day

-- dialect: duckdb
UPDATE note SET body = {text} WHERE id = {int}

-- dialect: duckdb
DELETE FROM note USING lake.x.gone g WHERE note.id = g.id AND g.day < DATE '{day}'

-- dialect: duckdb
CREATE OR REPLACE TABLE hot AS SELECT * FROM lake.web.hit WHERE at >= TIMESTAMP '{ts}'

-- dialect: duckdb
CREATE TABLE measure (id BIGINT PRIMARY KEY, v DOUBLE, tags VARCHAR[], at TIMESTAMPTZ DEFAULT now())

-- dialect: duckdb
CREATE VIEW slow AS SELECT id FROM lake.ops.request WHERE latency_ms > 1000

-- dialect: duckdb
COPY (SELECT id, total FROM lake.shop.orders WHERE total > {num}) TO 'out.parquet' (FORMAT parquet)

-- dialect: duckdb
ALTER TABLE measure ADD COLUMN unit VARCHAR

-- dialect: duckdb
DROP VIEW IF EXISTS slow

-- dialect: duckdb
DESCRIBE SELECT * FROM lake.shop.orders

-- dialect: duckdb
SUMMARIZE lake.shop.orders

-- dialect: duckdb
SHOW ALL TABLES

-- dialect: duckdb
EXPLAIN ANALYZE SELECT sum(total) FROM lake.shop.orders WHERE id % {int} = 0

-- dialect: duckdb
PRAGMA database_size

-- dialect: duckdb
SET memory_limit = '4GB'

-- dialect: duckdb
ATTACH 'ops.duckdb' AS ops (READ_ONLY)

-- dialect: duckdb
CHECKPOINT

-- dialect: snowflake
SELECT {a}.region, sum({a}.net) AS {b} FROM sales.public.invoice {a} WHERE {a}.issued_on >= '{day}'::date AND {a}.status IN ({texts}) GROUP BY 1 ORDER BY 2 DESC LIMIT {int}

-- dialect: snowflake
SELECT customer_id, net FROM sales.public.invoice QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY issued_on DESC) = {int}

-- dialect: snowflake
SELECT v:device.os::string AS {a}, count(*) FROM raw.public.event WHERE v:kind::string = {text} AND at > dateadd(day, -{int}, '{day}'::date) GROUP BY 1

-- dialect: snowflake
SELECT f.value:sku::string AS {a}, sum(f.value:qty::int) FROM raw.public.cart c, LATERAL FLATTEN(input => c.lines) f WHERE c.placed_at >= '{ts}'::timestamp_ntz GROUP BY 1

-- dialect: snowflake
SELECT iff(score > {num}, 'high', 'low') AS {a}, count(*) FROM risk.public.rating WHERE model ILIKE {text} GROUP BY {a}

-- dialect: snowflake
SELECT * FROM sales.public.invoice AT (OFFSET => -3600) WHERE id = {int}

-- dialect: snowflake
SELECT date_trunc('week', issued_on) AS {a}, count_if(net > {num}) FROM sales.public.invoice GROUP BY 1 HAVING count(*) > {int}

-- dialect: snowflake
SELECT c.name, zeroifnull(sum(i.net)) FROM crm.public.client c LEFT JOIN sales.public.invoice i ON i.client_id = c.id AND i.issued_on BETWEEN '{day}' AND '{day}' GROUP BY c.name

-- dialect: snowflake
SELECT * FROM (SELECT region, product, net FROM sales.public.invoice WHERE year = {int}) PIVOT (sum(net) FOR region IN ('EU', 'US'))

-- dialect: snowflake
SELECT listagg(label, ', ') WITHIN GROUP (ORDER BY label) FROM crm.public.tag WHERE client_id = {int}

-- dialect: snowflake
SELECT $1, $2 FROM @stage.landing/day=1/file.csv (FILE_FORMAT => 'csv_plain')

-- dialect: snowflake
SELECT try_to_number(code), to_date(day_text, 'YYYY-MM-DD') FROM raw.public.feed WHERE source = {text} AND try_to_number(code) > {int}

-- dialect: snowflake
WITH {a} AS (SELECT client_id, median(net) AS {b} FROM sales.public.invoice WHERE net > {num} GROUP BY client_id) SELECT count(*) FROM {a} WHERE {a}.{b} BETWEEN {num} AND {num}

-- dialect: snowflake
SELECT query_id, total_elapsed_time FROM snowflake.account_usage.query_history WHERE start_time > '{ts}'::timestamp_ltz AND warehouse_name = {text}

-- dialect: snowflake
SELECT * FROM table(information_schema.warehouse_metering_history(current_date - 7))

-- dialect: snowflake
INSERT INTO sales.public.adjustment (id, note, net) VALUES ({int}, {text}, {num})

-- dialect: snowflake
INSERT OVERWRITE INTO mart.public.daily SELECT issued_on, sum(net) FROM sales.public.invoice WHERE issued_on = '{day}' GROUP BY issued_on

-- dialect: snowflake
MERGE INTO crm.public.client {a} USING stage.public.client {b} ON {a}.id = {b}.id WHEN MATCHED THEN UPDATE SET {a}.email = {b}.email WHEN NOT MATCHED THEN INSERT (id, email) VALUES ({b}.id, {b}.email)

-- dialect: snowflake
UPDATE crm.public.client SET tier = {text} WHERE id IN ({ints})

-- dialect: snowflake
DELETE FROM raw.public.event WHERE at < '{day}'::date

-- dialect: snowflake
COPY INTO raw.public.feed FROM @stage.landing FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1) ON_ERROR = 'SKIP_FILE'

-- dialect: snowflake
CREATE OR REPLACE TABLE mart.public.top_client CLUSTER BY (region) AS SELECT id, region FROM crm.public.client WHERE revenue > {num}

-- dialect: snowflake
CREATE TABLE mart.public.fact (id NUMBER(38, 0), net NUMBER(18, 2), at TIMESTAMP_NTZ, v VARIANT)

-- dialect: snowflake
CREATE OR REPLACE VIEW mart.public.open_invoice AS SELECT id FROM sales.public.invoice WHERE status = 'open'

-- dialect: snowflake
CREATE TABLE mart.public.copy CLONE mart.public.fact

-- dialect: snowflake
ALTER TABLE mart.public.fact CLUSTER BY (at, region)

-- dialect: snowflake
ALTER WAREHOUSE compute_wh SET WAREHOUSE_SIZE = 'LARGE'

-- dialect: snowflake
DROP TABLE IF EXISTS mart.public.copy

-- dialect: snowflake
SHOW TABLES IN SCHEMA sales.public

-- dialect: snowflake
DESCRIBE TABLE sales.public.invoice

-- dialect: snowflake
EXPLAIN SELECT count(*) FROM sales.public.invoice WHERE net > {num}

-- dialect: snowflake
USE WAREHOUSE compute_wh

-- dialect: snowflake
ALTER SESSION SET QUERY_TAG = {text}

-- dialect: snowflake
CALL mart.public.refresh_daily({text}, {int})

-- dialect: snowflake
TRUNCATE TABLE stage.public.client

-- dialect: snowflake
GRANT SELECT ON TABLE mart.public.fact TO ROLE analyst

-- dialect: athena
SELECT {a}.elb_status_code, count(*) AS {b} FROM logs.alb {a} WHERE {a}.day = '{day}' AND {a}.target_status_code IN ({texts}) GROUP BY {a}.elb_status_code ORDER BY {b} DESC

-- dialect: athena
SELECT useridentity.arn, eventname, count(*) FROM audit.cloudtrail WHERE region = {text} AND eventtime > '{ts}' GROUP BY useridentity.arn, eventname LIMIT {int}

-- dialect: athena
SELECT "$path", count(*) FROM raw.feed WHERE year = {text} AND month = {text} GROUP BY "$path"

-- dialect: athena
SELECT from_unixtime(at) AS {a}, request_url FROM logs.cdn WHERE status BETWEEN {int} AND {int} AND date_parse(day, '%Y-%m-%d') >= date_add('day', -{int}, current_date)

-- dialect: athena
WITH {a} AS (SELECT account, sum(cost) AS {b} FROM billing.cur WHERE line_item_usage_start_date >= TIMESTAMP '{ts}' GROUP BY account) SELECT account, {b} FROM {a} WHERE {b} > {num} ORDER BY {b} DESC

-- dialect: athena
SELECT t.k, t.v FROM raw.bag CROSS JOIN UNNEST(props) AS t (k, v) WHERE t.k = {text}

-- dialect: athena
SELECT count(DISTINCT session) FROM web.hit WHERE day BETWEEN '{day}' AND '{day}' AND NOT regexp_like(agent, {text})

-- dialect: athena
SELECT a.id, b.name FROM shop.orders a LEFT JOIN shop.client b ON a.client_id = b.id WHERE a.total > {num} AND b.name IS NULL

-- dialect: athena
SELECT * FROM lake.orders FOR TIMESTAMP AS OF TIMESTAMP '2024-05-01 00:00:00 UTC' WHERE id = {int}

-- dialect: athena
SELECT kind, histogram(size_class) FROM store.object WHERE bucket = {text} GROUP BY kind

-- dialect: athena
INSERT INTO mart.daily SELECT day, sum(total) FROM shop.orders WHERE day = '{day}' GROUP BY day

-- dialect: athena
INSERT INTO mart.note VALUES ({int}, {text})

-- dialect: athena
MERGE INTO lake.client {a} USING stage.client {b} ON {a}.id = {b}.id WHEN MATCHED THEN UPDATE SET name = {b}.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES ({b}.id, {b}.name)

-- dialect: athena
DELETE FROM lake.client WHERE closed_on < DATE '{day}'

-- dialect: athena
UPDATE lake.client SET tier = {text} WHERE id = {int}

-- dialect: athena
CREATE TABLE mart.big WITH (format = 'PARQUET', partitioned_by = ARRAY['day']) AS SELECT id, total, day FROM shop.orders WHERE total > {num}

-- dialect: athena
CREATE EXTERNAL TABLE raw.click (id string, at timestamp) PARTITIONED BY (day string) ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe' LOCATION 's3://bucket/click/'

-- dialect: athena
CREATE TABLE lake.trip (id bigint, at timestamp) PARTITIONED BY (day(at)) LOCATION 's3://bucket/trip/' TBLPROPERTIES ('table_type' = 'ICEBERG')

-- dialect: athena
CREATE OR REPLACE VIEW mart.open_order AS SELECT id FROM shop.orders WHERE status = 'open'

-- dialect: athena
ALTER TABLE raw.click ADD IF NOT EXISTS PARTITION (day = '{day}') LOCATION 's3://bucket/click/one/'

-- dialect: athena
MSCK REPAIR TABLE raw.click

-- dialect: athena
OPTIMIZE lake.trip REWRITE DATA USING BIN_PACK WHERE at > TIMESTAMP '{ts}'

-- dialect: athena
VACUUM lake.trip

-- dialect: athena
DROP TABLE IF EXISTS mart.big

-- dialect: athena
SHOW PARTITIONS raw.click

-- dialect: athena
SHOW CREATE TABLE lake.trip

-- dialect: athena
DESCRIBE FORMATTED raw.click

-- dialect: athena
EXPLAIN SELECT count(*) FROM shop.orders WHERE total > {num}

-- dialect: athena
UNLOAD (SELECT id, total FROM shop.orders WHERE day = '{day}') TO 's3://bucket/out/' WITH (format = 'PARQUET')

-- dialect: athena
EXECUTE find_order USING {int}

-- dialect: athena
SELECT approx_percentile(total, ARRAY[0.5, 0.95]) FROM shop.orders WHERE channel IN ({texts}) AND client_id IN ({ints})

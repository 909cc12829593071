-- When the layout agent last took a table up, and why it came to nothing; empty where it came to advice.
CREATE TABLE layout_look (table_id VARCHAR NOT NULL, looked_at TIMESTAMPTZ NOT NULL, error VARCHAR);

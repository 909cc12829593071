"""The PostgreSQL wire front end: psql, psycopg, JDBC and BI tools on the gateway."""

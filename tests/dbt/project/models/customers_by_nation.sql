SELECT n.n_name AS nation, count(*) AS customers, sum(c.c_acctbal) AS balance
FROM {{ source('tpch', 'customer') }} AS c
JOIN {{ source('tpch', 'nation') }} AS n ON n.n_nationkey = c.c_nationkey
GROUP BY n.n_name

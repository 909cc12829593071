{{ config(materialized='incremental', incremental_strategy='append', views_enabled=false) }}
SELECT DATE '2026-01-01' AS day, (SELECT count(*) FROM {{ ref('customers_by_nation') }}) AS nations
{% if is_incremental() %}
WHERE NOT EXISTS (SELECT 1 FROM {{ this }} AS known WHERE known.day = DATE '2026-01-01')
{% endif %}

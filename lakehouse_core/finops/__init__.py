"""FinOps: prices, metering, attribution, workload groups, budgets, forecasts, exports."""

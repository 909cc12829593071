-- What an invoice asks for beside what it amortises to (FOCUS: BilledCost beside EffectiveCost), and what kind of
-- charge a line is (Usage, Purchase, Tax, Credit, Adjustment; NULL: the bill does not say).
ALTER TABLE bill_line ADD COLUMN billed_cost DECIMAL(38,9);
ALTER TABLE charge ADD COLUMN billed_cost DECIMAL(38,9);
ALTER TABLE charge ADD COLUMN charge_category VARCHAR;

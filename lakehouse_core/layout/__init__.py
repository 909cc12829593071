"""Layout: in which order a table's rows would spare its readers most, and whether that pays."""

"""How large rows are under a layout: neighbours that are alike pack better.

A sample is thinner than the table: values that form long runs in a sorted table are hardly there
twice. So files are made up: some stretches of the sample, in the order in question, are filled with
as many rows as a file of the table has, and written as Parquet, column by column, as Spark does.

The words of this package:

axis: the distinct values of a column from 0 to 1, each as wide as its share of the table's rows.
    Between values of the sample (seen) lie values that only the table has (unseen); how many they
    are follows from how many the sample has once and twice.
point: a place on an axis, that is a value. A uniform lot is a value of a row chosen by lot.
path: the points of the made rows, in their order, on the axis of one column. In a column that the
    order is by it rises; in one that has something to do with the order it stays near the sampled
    rows around; in any other it is by lot, and costs the same in every order.
told column: one that has one value where another column has one, as a customer's number tells the
    name. Its path is read from the other's.

`estimate` is the whole of it; `paths`, `column`, `told` and `axis` are its parts, from large to
small; `unseen`, `texts`, `read`, `neighbours` and `parquet` know one thing each. What each rule
buys is in ADR 14.
"""

from lakehouse_core.layout.packing.estimate import Packing

__all__ = ["Packing"]

"""The allow-list of the tree: which kinds of nodes a statement may hold.

Fails closed: a kind that is not listed here or in `functions` is refused, so a new release of
sqlglot, or a corner of a dialect nobody looked at, allows nothing by itself. What looks harmless
and is left out on purpose: `Into`, `Lock`, `Command`, `QueryTransform` (Spark's TRANSFORM runs a
shell command), `Parameter` and `SessionParameter` (settings), `DynamicIdentifier` (a name made
from a text), `ModelAttribute`, `Operator`, `Stream`.
"""

from __future__ import annotations

from sqlglot import exp

from lakehouse_core.sql.listing import node_types

QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)

STRUCTURE = node_types("""
    Select Union Except Intersect Subquery Values With CTE RecursiveWithSearch From Join Where
    Group Cube Rollup GroupingSets Having Qualify Order Ordered Sort Cluster Distribute Limit
    LimitOptions Fetch Offset Distinct TableAlias Tuple Alias Aliases Paren Star Hint JoinHint
    TableSample Pivot PivotAlias PivotAny UnpivotColumns PositionalColumn Version HistoricalData
    Window WindowSpec WithinGroup Filter IgnoreNulls RespectNulls HavingMax MatchRecognize
    MatchRecognizeMeasure Lambda Kwarg PropertyEQ Slice Bracket Comprehension
""")

VALUES = node_types("""
    Column Literal Identifier Var Null Boolean Placeholder BitString HexString ByteString RawString
    UnicodeString National DataType DataTypeParam ColumnDef Interval IntervalSpan
    JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathScript JSONPathSlice
    JSONPathSelector JSONPathSubscript JSONPathUnion JSONPathWildcard JSON FormatJson JSONKeyValue
    JSONValue OnCondition JSONExtractQuote OverflowTruncateBehavior
""")

OPERATORS = node_types("""
    Add Sub Mul Div IntDiv Mod Neg Not And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
    BitwiseLeftShift BitwiseRightShift DPipe EQ NEQ NullSafeEQ NullSafeNEQ LT LTE GT GTE Is In
    Between Like ILike SimilarTo Glob Escape Overlaps Any All AtTimeZone Distance
    RegexpLike RegexpILike Pow Collate
""")

# What statements of roles that write or define add to that.
WRITING = node_types("Insert Update Delete Merge When Whens Schema")
DEFINING = node_types("""
    Alter AlterRename ColumnConstraint Comment Create Drop FileFormatProperty
    NotNullColumnConstraint PartitionedByProperty Properties RenameColumn Schema SqlSecurityProperty
""")

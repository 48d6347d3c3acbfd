"""What of a table that lies where a recording should be can be one: rows with a step, columns of a usable type.

Another version of the recorder, another program or a damaged disk may have written the file. A column that is
not understood is left out, as one that is not known; it must not cost the rest of the run.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from trainscope.store.schema import HISTOGRAM_COLUMNS

STEP = "step"
LARGEST = 2**53
"""Largest step: beyond, neither JSON nor a float has it exactly."""
TEXT = frozenset({"layer", "block", "plugin", "metric"})
LISTS = frozenset({*HISTOGRAM_COLUMNS, "shares"})


def part_of(table: pa.Table) -> pa.Table | None:
    """Return the rows and columns of a table that a recording can have, None where it has no steps."""
    if STEP not in table.schema.names or not kinds.is_integer(table.schema.field(STEP).type):
        return None
    usable = [field.name for field in table.schema if _is_usable(field)]
    if len(usable) < len(table.schema):
        table = table.select(usable)
    step = table.column(STEP)
    if kinds.is_int64(step.type) and not step.null_count and (not len(table) or _all_in_range(step)):
        return table
    at = table.schema.get_field_index(STEP)
    table = table.set_column(at, STEP, step.cast(pa.int64(), safe=False))
    import pyarrow.compute as pc

    step = table.column(STEP)
    return table.filter(pc.and_(pc.greater_equal(step, 0), pc.less_equal(step, LARGEST)))


def _all_in_range(step: pa.ChunkedArray) -> bool:
    values = step.to_numpy()
    return bool(values.min() >= 0 and values.max() <= LARGEST)


def _is_usable(field: pa.Field) -> bool:
    if field.name in TEXT:
        kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
        return bool(kinds.is_string(kind) or kinds.is_large_string(kind))
    if field.name in LISTS:
        listed = kinds.is_list(field.type) or kinds.is_fixed_size_list(field.type) or kinds.is_large_list(field.type)
        return bool(listed and _is_number(field.type.value_type))
    return _is_number(field.type)


def _is_number(kind: pa.DataType) -> bool:
    numbers = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_null)
    return any(is_one(kind) for is_one in numbers)

"""Tables with one value a row, the metric named beside it: turned into one column a metric.

MLflow and tbparse write ``step,tag,value``; TensorBoard's own CSV download has no name at all but the
file's (``run-train-tag-loss.csv``).
"""

from __future__ import annotations

import re

import numpy as np

from trainscope.readers.source import Source
from trainscope.readers.table import ABSENT, TEXT, Column, Table
from trainscope.readers.vocabulary import plain_name

_NAME_COLUMNS = frozenset({"tag", "metric", "metric_name", "key", "name", "variable"})
_TENSORBOARD = {"wall_time", "step", "value"}
_TAG_IN_FILE = re.compile(r".*?(?:^|[-_])tag[-_](.+)", re.IGNORECASE)
_MOST_METRICS = 2000


def widen(table: Table, source: Source) -> Table:
    """Return the table with a column for each metric that its rows name; itself if they name none."""
    by_plain = {plain_name(name): name for name in table.columns}
    if "value" not in by_plain:
        return table
    if set(by_plain) == _TENSORBOARD:
        match = _TAG_IN_FILE.fullmatch(source.name)
        column = {by_plain["value"]: match[1] if match else source.name}
        out = table.without(())
        out.columns = {column.get(name, name): values for name, values in table.columns.items()}
        return out
    for plain in sorted(_NAME_COLUMNS & set(by_plain)):
        if len(table.columns) >= 3 and (np.equal(table.columns[by_plain[plain]].state, TEXT)).all():
            return _spread(table, by_plain[plain], by_plain["value"])
    return table


def _spread(table: Table, names: str, values: str) -> Table:
    named = table.columns[names].text
    value = table.columns[values]
    rows: dict[str, list[int]] = {}
    for row, name in named.items():
        rows.setdefault(name, []).append(row)
    if len(rows) > min(_MOST_METRICS, max(1, table.rows // 2)) or set(rows) & set(table.columns):
        return table
    out = table.without((names, values))
    for name, members in rows.items():
        state = np.full(table.rows, ABSENT, np.uint8)
        state[members] = value.state[members]
        text = {row: value.text[row] for row in members if row in value.text}
        out.columns[name] = Column(np.where(state > ABSENT, value.value, np.nan), state, text)
    return out

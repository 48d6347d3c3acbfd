"""Rows of bare numbers under a line of names, such as Ultralytics prints: the names are given to the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainscope.readers.text_fields import Field, Layout, without_bars
from trainscope.readers.text_lines import MASK, Lines, Template
from trainscope.readers.text_words import Role, counter_named

_FEWEST = 3
"""Columns of a table."""
_FARTHEST = 500
"""Lines between names and numbers, at most: the other rows of the table, the updates of a bar."""


def named_by_header(template: Template, number: int, layout: Layout, lines: Lines) -> Layout:
    """Return a layout with the names of the line above, where most numbers have none and the widths match.

    Parameters
    ----------
    template : Template
        The row of numbers.
    number : int
        Its index.
    """
    words = without_bars(template.text).replace("|", " ").split()
    bare = sum(f.role in (Role.NONE, Role.PROGRESS, Role.TOTAL) for f in layout.fields)
    if len(template.sample) < _FEWEST or 2 * bare < len(layout.fields) or MASK not in words[0]:
        return layout
    header = _header(int(np.argmax(lines.of == number)), lines)
    if not _FEWEST <= len(header) <= len(words) or any(MASK not in word for word in words[: len(header)]):
        return layout
    fields: list[Field] = []
    for name, word in zip(header, words, strict=False):
        role = counter_named(name) or Role.VALUE
        fields.append(Field(role, name, strict=True))
        if word.count(MASK) == 2 and "/" in word and role is not Role.VALUE:
            fields.append(Field(Role.TOTAL, name))
        else:
            fields += [Field(Role.NONE)] * (word.count(MASK) - 1)
    fields += layout.fields[len(fields) :]
    return Layout(tuple(fields), layout.phase, layout.rank)


def _header(row: int, lines: Lines) -> Sequence[str]:
    """Return the words of the line of names above a row, past other rows of numbers and blank lines."""
    for above in range(row - 1, max(-1, row - 1 - _FARTHEST), -1):
        if lines.of[above] < 0:
            continue
        template = lines.templates[lines.of[above]]
        if len(template.sample) >= _FEWEST:
            continue
        words = template.text.replace("|", " ").split()
        names = len(words) >= _FEWEST and all(w[0].isalpha() or w[0] == "_" for w in words)
        return words if names and not template.sample else ()
    return ()

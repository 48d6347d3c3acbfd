"""Tables: rows of bare numbers take their names from the line above, and tables of how much data there is are none.

Ultralytics prints names above numbers. Detectron2 prints names beside numbers, once the instances of each class and
then, under the same names, the precision of each class again and again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from trainscope.readers.text_fields import Field, Layout, without_bars
from trainscope.readers.text_lines import MASK, Lines, Template
from trainscope.readers.text_words import Role, counter_named

_FEWEST = 3
"""Columns of a table."""
_COUNTS = re.compile(r"^#|\b(?:instances|samples|images|support|count)\b", re.IGNORECASE)
_RULE = re.compile(r"[\s|+]*(?:[-=]+[\s|+]*)+")
_SIGNS = {"E": "epoch", "#": "step"}
_MISSING = frozenset({"-", "--", "---", "n/a", "N/A", "NA", "None", "none", "null"})
"""What stands in a cell without a number."""
_FARTHEST = 500
"""Lines between names and numbers, at most: the other rows of the table, the updates of a bar."""


def named_by_header(template: Template, row: int, layout: Layout, lines: Lines) -> Layout:
    """Return a layout with the names of the line above, where most numbers have none and the widths match.

    Parameters
    ----------
    template : Template
        The row of numbers.
    row : int
        The first line that has it.
    """
    words = _words_of_row(template.text)
    bare = sum(f.role in (Role.NONE, Role.PROGRESS, Role.TOTAL) for f in layout.fields)
    given = sum(word not in _MISSING for word in words)
    if min(len(words), given + 1) < _FEWEST or 2 * bare < len(layout.fields) or MASK not in words[0]:
        return layout
    header = _header(row, len(words), lines)
    named = words[: len(header)]
    if len(header) < _FEWEST or any(MASK not in word and word not in _MISSING for word in named):
        return layout
    fields: list[Field] = []
    for name, word in zip(header, words, strict=False):
        if MASK not in word:
            continue
        role = counter_named(name) or Role.VALUE
        fields.append(Field(role, name, strict=True))
        if word.count(MASK) == 2 and "/" in word and role is not Role.VALUE:
            fields.append(Field(Role.TOTAL, name))
        else:
            fields += [Field(Role.NONE)] * (word.count(MASK) - 1)
    fields += layout.fields[len(fields) :]
    return Layout(tuple(fields), layout.phase, layout.rank)


def _words_of_row(text: str) -> list[str]:
    """Return the cells of a row; one that is blank is seen between bars alone."""
    words = without_bars(text).replace("|", " ").split()
    cells = _cells(text) if text.lstrip().startswith("|") else []
    return [cell or "-" for cell in cells] if max(map(len, map(str.split, cells)), default=2) <= 1 else words


def without_counts(template: Template, row: int, layout: Layout, lines: Lines) -> Layout:
    """Return a layout without values if its line is the row of a table that counts samples, by the heading above.

    Parameters
    ----------
    template : Template
        The row.
    row : int
        The first line that has it.
    """
    if not template.text.lstrip().startswith("|"):
        return layout
    cells = _cells(template.text)
    places = [i for i, cell in enumerate(cells) if cell == MASK]
    for above in range(row - 1, max(-1, row - 1 - _FARTHEST), -1):
        text = lines.templates[lines.of[above]].text if lines.of[above] >= 0 else ""
        if MASK in text or not text.strip(" |:-+"):
            continue
        heading = _cells(text)
        counts = text.lstrip().startswith("|") and [_COUNTS.search(heading[i]) for i in places if i < len(heading)]
        if counts and all(counts):
            return Layout((Field(Role.NONE),) * len(layout.fields), layout.phase, layout.rank)
        break
    return layout


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().strip("|").split("|")]


def _header(row: int, count: int, lines: Lines) -> Sequence[str]:
    """Return the names of the line above a row of `count` numbers, past other rows, rules and blank lines.

    Under a rule that shows the columns (``---  ------``), and where wide gaps stand between them, a name may be of
    several words.
    """
    rule = ""
    for above in range(row - 1, max(-1, row - 1 - _FARTHEST), -1):
        if lines.of[above] < 0:
            continue
        template = lines.templates[lines.of[above]]
        text = template.text
        if len(template.sample) >= _FEWEST or (template.sample and len(_words_of_row(text)) == count):
            continue
        if _RULE.fullmatch(text):
            rule = text
            continue
        words = text.replace("|", " ").split()
        if template.sample or len(words) < _FEWEST or not all(w[0].isalpha() or w[0] in "_#" for w in words):
            return ()
        if len(words) == count:
            return _with_signs(words)
        starts = [m.start() for m in re.finditer(r"[-=]+", rule)]
        cut = [text[a:b].strip(" |") for a, b in pairwise([*starts, len(text)])]
        wide = [w for w in re.split(r"\s*\|\s*|\s{2,}|\t", text.strip(" |")) if w]
        fitting = next((names for names in (cut, wide) if len(names) == count and all(names)), words)
        return _with_signs(fitting)
    return ()


def _with_signs(names: Sequence[str]) -> Sequence[str]:
    """Return names with spaCy's signs for the epoch and the step written out."""
    return [_SIGNS.get(name, name) for name in names] if "#" in names else names

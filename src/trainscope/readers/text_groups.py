"""Lines whose numbers have the same names, whatever else they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trainscope.core.metrics import canonical, tokens
from trainscope.core.run import FloatArray, IntArray
from trainscope.readers.text_columns import named_by_header, without_counts
from trainscope.readers.text_fields import Field, Layout, layout_of, without_bars
from trainscope.readers.text_lines import MASK, Lines
from trainscope.readers.text_rows import rows_of
from trainscope.readers.text_scales import scales_of
from trainscope.readers.text_words import COUNTERS, Role

FEWEST = 3
"""Lines of a kind, before one can speak of one."""

_MOST_LAYOUTS = 20_000
"""Templates looked at, the frequent ones first."""

PLAIN = frozenset(
    {
        "train/loss",
        "eval/loss",
        "train/accuracy",
        "eval/accuracy",
        "train/perplexity",
        "eval/perplexity",
        "train/reward",
    }
)

_CODE = re.compile(
    r"\bself\.|\bdef\s+\w+\(|\breturn\b|==|:=|\bimport\b|\bassert\b|\b(?:if|for|while|elif|else)\b.*:\s*$"
    r"|:\x00[fdegsx%]\}|\w\(f?[\"'][^)]*$|;\s*$|\bprint\(|[a-z_]\w*\.\w+\([^)]*$|\\n|^\s*(?:#|//|\$|>>>)\s*\w"
    r"|^\s*[\w.]+\s*=\s*(?!tensor|array)[a-zA-Z_][\w.]*\(|^\s+[a-z]\w* = \x00,?$|\braise\b"
    r"|\bNamespace\("
)


@dataclass(frozen=True, slots=True, eq=False)
class LineKind:
    """Lines whose numbers have the same names."""

    fields: tuple[Field, ...]
    """Named values, counters and totals, in the order of the line."""
    phase: str
    line: IntArray
    """(n,) line numbers, from 0."""
    values: FloatArray
    """(n, fields)"""
    counts: bool = False
    """Whether the lines say a step or an epoch that moves, in lines of this kind or of another."""
    column: tuple[str, ...] = ()
    """What each field's column is called, "" for those that are none; settled by `text_names`."""

    def __len__(self) -> int:
        return len(self.line)

    def counters(self) -> list[int]:
        """Return which fields count."""
        return [i for i, f in enumerate(self.fields) if f.role in COUNTERS]

    def metrics(self) -> list[int]:
        """Return which fields are values."""
        return [i for i, f in enumerate(self.fields) if f.role is Role.VALUE]

    def without_values(self) -> LineKind:
        """Return the kind without its numbers."""
        return replace(self, values=self.values[:0].copy())


@dataclass(slots=True)
class _Group:
    layout: Layout
    keep: list[int]
    templates: list[tuple[int, list[int]]] = field(default_factory=list)
    count: int = 0


def grouped(lines: Lines) -> Iterable[_Group]:
    """Return the templates by the names of their numbers, those of the first process where several wrote."""
    templates = lines.templates
    groups: dict[object, _Group] = {}
    first = np.zeros(len(templates) + 1, np.int64)
    first[lines.of[::-1]] = np.arange(len(lines.of) - 1, -1, -1)  # of several lines, what is written last stays
    order = sorted((i for i, t in enumerate(templates) if t.sample), key=lambda i: (-templates[i].count, i))
    for i in order[:_MOST_LAYOUTS]:
        if _CODE.search(without_bars(templates[i].text)):
            continue
        row = int(first[i])
        layout = named_by_header(templates[i], row, layout_of(templates[i]), lines)
        layout = without_counts(templates[i], row, layout, lines)
        keep = _distinct(layout.fields)
        if not keep:
            continue
        shape = tuple((layout.fields[j].role, layout.fields[j].name) for j in keep)
        group = groups.setdefault((layout.phase, layout.rank, frozenset(shape)), _Group(layout, keep))
        at = dict(zip(shape, keep, strict=True))
        reference = [(group.layout.fields[j].role, group.layout.fields[j].name) for j in group.keep]
        group.templates.append((i, [at[key] for key in reference]))
        group.count += templates[i].count
    found = [g for g in groups.values() if g.count >= FEWEST or _speaks_plainly(g)]
    ranks = {r for g in found if (r := g.layout.rank) is not None}
    return [g for g in found if g.layout.rank is None or g.layout.rank == min(ranks)]


def _speaks_plainly(group: _Group) -> bool:
    """Tell whether a line that does not recur is one of metrics all the same: a step and a loss, by their names."""
    fields = group.layout.fields
    return any(f.role in (Role.STEP, Role.EPOCH) for f in fields) and any(
        f.role is Role.VALUE and canonical(f.name) in PLAIN for f in fields
    )


def _distinct(fields: Sequence[Field]) -> list[int]:
    """Return the fields that are kept: the first of each name."""
    seen: set[tuple[Role, str]] = set()
    out = []
    for i, f in enumerate(fields):
        key = (f.role, f.name)
        if f.role in (Role.NONE, Role.AVERAGE) or key in seen or (f.role is Role.TOTAL and i - 1 not in out):
            continue
        seen.add(key)
        out.append(i)
    return out


def kinds_of(lines: Lines) -> list[LineKind]:
    """Return the lines whose numbers have the same names, with the numbers, kind by kind. The lines lose theirs."""
    groups = list(grouped(lines))
    out = []
    scales = {i: scale for i, g in enumerate(groups) if (scale := _scales(g, lines)) is not None}
    for group, rows in zip(groups, rows_of([g.templates for g in groups], lines, scales), strict=True):
        fields = tuple(group.layout.fields[j] for j in group.keep)
        out.append(LineKind(fields, group.layout.phase, rows.line, rows.values))
    return out


def _scales(group: _Group, lines: Lines) -> FloatArray | None:
    if len(group.templates) == 1:
        return None
    parts = ((lines.templates[i].text.split(MASK), picks) for i, picks in group.templates)
    return scales_of([[texts[pick + 1] for pick in picks] for texts, picks in parts])


def without_rows_of_other_ranks(k: LineKind) -> LineKind:
    """Keep the lines of the first process where a field says which one wrote them."""
    for i, f in enumerate(k.fields):
        if tokens(f.name) in (("rank",), ("local", "rank"), ("global", "rank")) and f.role is Role.VALUE:
            mine = k.values[:, i] == np.nanmin(k.values[:, i]) if np.isfinite(k.values[:, i]).any() else None
            if mine is not None:
                return replace(k, line=k.line[mine], values=k.values[mine])
    return k

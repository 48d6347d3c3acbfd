"""What the numbers of a line of text stand for, told by the text around them.

Algorithm
    A number is named by what stands before it: ``loss: 2.3``, ``loss=2.3``, ``'loss': 2.3``, ``| loss | 2.3 |``
    and, for words that name a metric or a counter, ``loss 2.3``. Where nothing does, by what stands behind it up to
    the next delimiter: ``| 145701 tok/s |``. ``3/10`` is a counter and its end. A second number in brackets,
    ``2.3 (2.5)``, is a running mean. Behind a counter it may stand before it: ``Loss at step 100: 2.3``. The other
    words of the line say whether it is of training or of evaluation; where a line says the same names of both, one
    after the other, what comes second is of the evaluation.
Misses
    Values before their names without a delimiter (``2.3 loss, 4.5 norm`` is read as a loss of 4.5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainscope.core.metrics import tokens
from trainscope.readers.text_lines import MASK, Template
from trainscope.readers.text_phrases import (
    GIVES,
    GLUED,
    UNIT,
    cleaned,
    counted_phrase,
    counts_no_step,
    is_of_before,
    last_phrase,
    longest_known,
    name_before,
    name_behind,
    second_side,
)
from trainscope.readers.text_values import is_clock
from trainscope.readers.text_words import COUNTERS, SIDES, Role, counter_named, phase_in, with_unit
from trainscope.readers.vocabulary import PHASES


@dataclass(frozen=True, slots=True)
class Field:
    """One number of a template."""

    role: Role
    name: str = ""
    strict: bool = False
    """A separator stands between name and number, so that any word may be the name."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a template's numbers stand for."""

    fields: tuple[Field, ...]
    phase: str
    """``train``, ``eval``, ``test`` or nothing, by the words that name no number."""
    rank: int | None = None
    """The process that wrote the line, where it says so."""


_POSSESSIVE = re.compile(r"(?<=\w)'s (?=\w)")

_BARS = re.compile(r"[\u2500-\u259f]+|\[[=>.\-# ]{3,}\]|\|[#=>.\- ]*\||[=*#~\-]{4,}")

_LONGEST_RANK = 9
"""Digits."""
_RANK = re.compile(r"^\s*(?:\[(?:default|rank|Rank )(\d+|\x00)\]|rank(\d+)):?", re.IGNORECASE)


def layout_of(template: Template) -> Layout:
    """Return what the numbers of a template stand for."""
    text = _POSSESSIVE.sub(" ", without_bars(template.text))
    parts = text.split(MASK)
    sample = template.sample
    fields: list[Field] = []
    if len(parts) != len(sample) + 1:
        return Layout((Field(Role.NONE),) * len(sample), "")
    for i, number in enumerate(sample):
        fields.append(_field(parts, sample, fields, i, number))
    _join_split_names(parts, sample, fields)
    _nest_counts(parts, sample, fields)
    mirrored = _with_sides(parts, fields)
    rank = _RANK.match(text)
    said = (rank[1] or rank[2]) if rank else None
    if said == MASK:
        said = sample[0]
    phase = "train" if mirrored else phase_of(parts, fields)
    return Layout(tuple(fields), phase, int(said) if said and said.isdecimal() and len(said) <= _LONGEST_RANK else None)


def without_bars(text: str) -> str:
    """Return a line without the drawing of progress bars and rules."""
    return _BARS.sub(" | ", text)


def _field(parts: list[str], sample: tuple[str, ...], before: list[Field], i: int, number: str) -> Field:
    lead, follow = parts[i], parts[i + 1]
    if is_clock(number) or (i + 2 < len(sample) and _is_date(parts, sample, i)):
        return Field(Role.NONE)
    whole = number.lstrip("-").rstrip(".").replace(",", "").isdecimal()
    if whole and lead.endswith("@"):
        return Field(Role.NONE)  # of a name: "Acc@1: 76.5"
    if i and lead.strip() in ("/", "of", "|/") and before[-1].role in COUNTERS:
        return Field(Role.TOTAL, before[-1].name)
    name, strict = name_before(lead, inside=i > 0)
    if not name and i and GIVES.fullmatch(lead) and (what := _before_count(parts, before)):
        return Field(Role.VALUE, with_unit(what, follow), strict=True)
    ends = i + 1 < len(sample) and follow.strip() in ("/", "of") and sample[i + 1].replace(",", "").isdecimal()
    if whole and (counter := _counter(name, follow, strict=strict)) is not None:
        return counter
    if whole and ends:
        return Field(Role.NONE) if counts_no_step(name) else Field(Role.PROGRESS, name, strict)
    if i and not name and lead.strip(" ")[-1:] in ("(", "[") and _is_twin(lead, before[-1]):
        return Field(Role.AVERAGE)
    if not name:
        if whole and not i and not lead.strip(" |[(>*-") and follow[:1] in (" ", "\t", ":", "]", ")", ","):
            return Field(Role.PROGRESS)
        name, strict = name_behind(lead, follow, first=i == 0), True
    if not name or is_of_before(name):
        return Field(Role.NONE)
    name = with_unit(name, follow)
    return Field(Role.VALUE, name, strict)


def _counter(name: str, follow: str, *, strict: bool) -> Field | None:
    """Return what a whole number counts, by the text around it."""
    if name.lower() in PHASES and follow.strip(" ") == "[":
        return Field(Role.EPOCH, "epoch")  # "Train: 3 [  50/1251 (  4%)]"
    if (glued := GLUED.match(follow)) is not None:
        return Field(counter_named(glued[1]) or Role.NONE, glued[1])
    role = counter_named(name)
    return None if role is None else Field(role, name, strict)


def _before_count(parts: list[str], before: list[Field]) -> str:
    """Return what stands before the counter that is the last of `before`: the loss of ``Loss at step 100``."""
    at = len(before) - 1
    if at > 0 and before[at].role is Role.TOTAL:
        at -= 1
    phrase = counted_phrase(parts[at]) if before[at].role in COUNTERS else ""
    return longest_known(cleaned(last_phrase(phrase)))[0]


def _with_sides(parts: list[str], fields: list[Field]) -> bool:
    """Give the second half of a line that says the same of two sides its side; tell whether it is one."""
    side, where = second_side(parts, [f.name if f.role is Role.VALUE else "" for f in fields])
    for i in range(where, len(fields)) if side else ():
        f = fields[i]
        if f.role is Role.VALUE and not any(w in PHASES for w in tokens(f.name)):
            fields[i] = Field(f.role, f"{side}/{f.name}", f.strict)
    return bool(side)


def _nest_counts(parts: list[str], sample: tuple[str, ...], fields: list[Field]) -> None:
    """Tell the epoch from its step where neither has a name: ``[3/25][50/391]``, ``[3,  2000] loss``."""
    if not fields or fields[0] != Field(Role.PROGRESS):
        return
    both_end = len(fields) > 3 and [f.role for f in fields[1:4]] == [Role.TOTAL, Role.PROGRESS, Role.TOTAL]
    if both_end and parts[2].strip() in ("][", "] [", ") ("):
        fields[:2] = [Field(Role.EPOCH, "epoch"), Field(Role.TOTAL, "epoch")]
    pair = len(fields) > 2 and sample[1].isdecimal() and parts[1].strip() == "," and parts[2][:1] == "]"
    if pair and parts[0].rstrip(" ").endswith("["):
        fields[:2] = [Field(Role.EPOCH, "epoch"), Field(Role.STEP, "batch")]


def _join_split_names(parts: list[str], sample: tuple[str, ...], fields: list[Field]) -> None:
    """Give numbers that belong to a name back to it: ``top-5 acc: 0.8``, ``| mean 100 return | 7 |``."""
    for i in range(len(fields) - 1):
        after, glue = fields[i + 1], parts[i][-1:]
        row = parts[i].lstrip().startswith("|") and parts[i].count("|") == 1
        if fields[i].role is not Role.NONE or not sample[i].isdecimal() or not (row or glue in ("-", "@", "#")):
            continue
        if not row and after.name and parts[i + 1][:1] in (":", "="):
            continue  # "output #0: loss = 2.3": the loss has a name
        start = last_phrase(parts[i].lstrip(" |"))
        middle = parts[i + 1]
        end = re.match(r"[\w ./%\-]*", middle)
        if start and end and re.match(r"\s*[:=|]", middle[end.end() :]) and after.role in (Role.VALUE, Role.NONE):
            joined = cleaned(
                (start + sample[i] + end[0].rstrip() if not row else f"{start} {sample[i]}{end[0]}").strip()
            )
            if joined:
                fields[i + 1] = Field(Role.VALUE, joined, strict=True)


def _is_date(parts: list[str], sample: tuple[str, ...], i: int) -> bool:
    """Tell whether a number is the year or the month of a date."""
    gap = parts[i + 1]
    if gap not in ("-", "/", ".") or not sample[i].isdecimal() or not sample[i + 1].isdecimal():
        return False
    if len(sample[i]) == 4 and parts[i + 2] == gap:
        return True
    return len(sample[i]) == 2 and parts[i + 2] in (" ", "-", "_") and is_clock(sample[i + 2])


def _is_twin(lead: str, before: Field) -> bool:
    opened = lead.strip()
    unit = UNIT.sub("", opened, count=1) if opened[:1] not in ("(", "[") else opened
    return unit.strip() in ("(", "[", "(*", "(+", "(avg", "(+/-") and before.role in (Role.VALUE, *COUNTERS)


def counts_what(field: Field) -> tuple[Role, str]:
    """Return what a counter counts, whatever else is in its name: ``step`` and ``validate step`` are one."""
    if field.role is Role.EPOCH:
        return field.role, ""
    return field.role, "_".join(w for w in tokens(field.name) if w not in SIDES)


def phase_of(parts: list[str], fields: list[Field]) -> str:
    """Return which data a line is about, by the words that name none of its numbers."""
    text = " ".join(parts)
    for field in fields:
        if field.name and field.role is Role.VALUE:
            text = text.replace(field.name, " ", 1)
    return phase_in(text)

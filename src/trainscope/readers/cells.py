"""One cell of text to one number: what loggers, spreadsheets and ``repr`` make of a float.

Understood: plain and scientific numbers, NaN and infinity in any spelling, ``tensor(2.3, device='cuda:0')``,
``np.float64(1.2)``, thousands separators (``7,377``), percent signs, a decimal comma where the file uses one,
durations (``0:01:03``, ``9 days, 21:39:23``, ``49m 57s``) and ISO dates.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

BLANK = frozenset({"", "none", "null", "<na>"})
"""Cells that say "nothing here" (lower case): an empty cell, and what ``str(None)`` and pandas leave."""

_REPR = re.compile(
    r"(?:[a-z_][\w.]*)\(\s*\[?\s*([-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf(?:inity)?))\s*\]?\s*(?:,[^()]*)?\)",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_STEP_OF = re.compile(r"\s*(\d{1,18})\s*/\s*(\d{1,18})\s*")
_CLOCK = re.compile(r"(?:(\d+)\s*days?,?\s*)?(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)")
_UNITS = re.compile(
    r"(?=.)(?:(\d+)\s*d(?:ays?)?\s*)?(?:(\d+)\s*h\w*\s*)?(?:(\d+)\s*m(?:in\w*)?\s*)?(?:(\d+(?:\.\d+)?)\s*s\w*)?"
)


def is_blank(text: str) -> bool:
    """Tell whether a cell holds nothing."""
    return text.strip().lower() in BLANK


def number(text: str, *, decimal: str = ".") -> float | None:
    """Return the number that a cell stands for, None if it is text.

    Parameters
    ----------
    text : str
        The cell.
    decimal : str
        ``","`` where the file writes 1,5 for one and a half.
    """
    text = text.strip()
    if decimal == "," and _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    plain = _float(text)
    if plain is not None:
        return plain
    if text.endswith("%"):
        return number(text[:-1], decimal=decimal)
    wrapped = _REPR.fullmatch(text)
    if wrapped is not None:
        return _float(wrapped[1])
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return None


def _float(text: str) -> float | None:
    # Python's float() also takes 1_000, which no logger writes.
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def step_of(text: str) -> tuple[int, int] | None:
    """Return (step, total) of a cell such as ``3/2353``, None if it is none."""
    match = _STEP_OF.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def duration(text: str) -> float | None:
    """Return the seconds of ``1:02:03``, ``9 days, 21:39:23`` or ``49m 57s``, None if it is no duration."""
    text = text.strip().lower()
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, hours, minutes, seconds = clock.groups(default="0")
    else:
        units = _UNITS.fullmatch(text)
        if units is None or not any(units.groups()):
            return None
        days, hours, minutes, seconds = units.groups(default="0")
    return ((float(days) * 24 + float(hours)) * 60 + float(minutes)) * 60 + float(seconds)


def unix_time(text: str) -> float | None:
    """Return the Unix seconds of an ISO date and time (UTC where it names no zone), None if it is none."""
    text = text.strip()
    if len(text) < 10:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(",", ".", 1))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except OverflowError:
        return None

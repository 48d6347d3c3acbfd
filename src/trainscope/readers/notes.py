"""Wording that notes share. What comes from a file is shown quoted, escaped and short."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 3
_LONGEST = 40


def counted(count: int, one: str, many: str) -> str:
    """Return ``"1 row has"`` or ``"3 rows have"``."""
    return f"{count} {one if count == 1 else many}"


def shown(text: str) -> str:
    """Return text from a file fit for a message: quoted, escaped, at most 40 characters."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return repr(short)


def quoted(texts: Sequence[str], count: int | None = None) -> str:
    """Return the first few of `texts`, shown; ``...`` where there are more, of `count` in all."""
    total = len(texts) if count is None else count
    distinct = list(dict.fromkeys(texts[:_SHOWN]))
    more = ", ..." if total > len(texts[:_SHOWN]) else ""
    return ", ".join(map(shown, distinct)) + more

"""Makes a report fit: GitHub drops a summary or a comment that is too long whole, so we leave out whole findings."""

from __future__ import annotations

from collections.abc import Callable

from trainscope.github.told import MAX_ROWS, Pieces, table
from trainscope.report.text import plural

MAX_SUMMARY_BYTES = 1_000_000
"""GitHub's limit is 1,048,576 bytes a step, and it drops what is longer without a word."""
MAX_COMMENT_CHARACTERS = 60_000
"""GitHub's limit is 65,536 characters."""
_FOLD = ("<details><summary>Findings in full</summary>", "</details>")


def summary_text(pieces: Pieces) -> str:
    """Return the job summary, in at most ``MAX_SUMMARY_BYTES`` bytes of UTF-8."""
    return _fitted(pieces, "", MAX_SUMMARY_BYTES, lambda text: len(text.encode()))


def comment_text(pieces: Pieces, marker: str) -> str:
    """Return the comment, its marker in the first line, in at most ``MAX_COMMENT_CHARACTERS`` UTF-16 units."""
    # GitHub says characters; counting UTF-16 units is right whichever it means.
    return _fitted(pieces, f"{marker}\n", MAX_COMMENT_CHARACTERS, lambda text: len(text.encode("utf-16-le")) // 2)


def _fitted(pieces: Pieces, first: str, limit: int, size: Callable[[str], int]) -> str:
    shown = _most(min(len(pieces.rows), MAX_ROWS), lambda n: size(_layout(pieces, first, n, 0)) <= limit)
    full = _most(len(pieces.details), lambda n: size(_layout(pieces, first, shown, n)) <= limit)
    text = _layout(pieces, first, shown, full)
    if size(text) <= limit:
        return text
    # Not one finding fits: then the head alone is too long, which only a hostile document is.
    lines = pieces.head.split("\n", 1)[0]
    return f"{first}{lines}\n\nThe report is too long to be shown.\n"


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """Return the greatest number up to `count` that fits, by halving: what is longer never fits better."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _layout(pieces: Pieces, first: str, rows: int, details: int) -> str:
    parts = [f"{first}{pieces.head}".rstrip(), table(pieces.rows[:rows], len(pieces.rows) - rows)]
    if details:
        left = len(pieces.details) - details
        more = [f"{plural(left, 'more finding')} had no room here; the report has all."] if left else []
        parts.append("\n\n".join([_FOLD[0], *pieces.details[:details], *more, _FOLD[1]]))
    parts.append(pieces.foot)
    return "\n\n".join(part for part in parts if part) + "\n"

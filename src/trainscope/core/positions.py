"""Lists of steps or batches as people write them: ``4521-4523,4600``."""

from __future__ import annotations

from collections.abc import Iterable


def ranges(numbers: Iterable[int]) -> str:
    """Write ascending numbers, neighbours as a range: ``3-5,9``."""
    found: list[list[int]] = []
    for one in numbers:
        if found and one == found[-1][-1] + 1:
            found[-1][1:] = [one]
        else:
            found.append([one])
    return ",".join("-".join(map(str, pair)) for pair in found)


def batches(count: int) -> str:
    """Return ``1 batch``, ``3 batches``."""
    return f"{count} batch{'' if count == 1 else 'es'}"


def numbers(text: str) -> tuple[int, ...]:
    """Read what :func:`ranges` writes, in any order, as ascending numbers without repeats.

    Raises
    ------
    ValueError
        If a part is neither a number of at least 0 nor a range, or all are more than :data:`LONGEST`.
    """
    found: set[int] = set()
    for part in (piece.strip() for piece in text.split(",")):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise ValueError(f"{part!r} is no batch number; give numbers from 0 on, or ranges such as 4521-4523")
        begin, end = int(first), int(last) if dash else int(first)
        if end < begin:
            raise ValueError(f"{part!r} runs backwards")
        if end - begin >= LONGEST:
            raise ValueError(f"{part!r} is longer than {LONGEST:,} batches")
        found.update(range(begin, end + 1))
        if len(found) > LONGEST:
            raise ValueError(f"more than {LONGEST:,} batches")
    return tuple(sorted(found))


LONGEST = 1_000_000
"""Most batches of a list: a slip of the keyboard must not fill the memory."""
_MOST_DIGITS = 15


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS

"""Fisher's exact test: how surprising it is that so many of one group have a trait and so few of the other."""

from __future__ import annotations

from functools import lru_cache
from math import comb


@lru_cache(maxsize=65_536)
def at_least(having: int, group: int, others_having: int, others: int) -> float:
    """Return the one-sided p-value: as many of the group have the trait, or more, by chance.

    With the margins fixed, the number of the group's members that have it is hypergeometric (Fisher, Statistical
    Methods for Research Workers, 5th edition, 1934). Computed in whole numbers, so exact until the one division.

    Parameters
    ----------
    having, others_having : int
        How many of the group, and of the others, have the trait.
    group, others : int
        How many there are of each.

    Raises
    ------
    ValueError
        If more have the trait than there are.
    """
    if not (0 <= having <= group and 0 <= others_having <= others):
        raise ValueError(f"{having} of {group} and {others_having} of {others} cannot be")
    total, with_it = group + others, having + others_having
    tail = sum(comb(group, k) * comb(others, with_it - k) for k in range(having, min(group, with_it) + 1))
    return tail / comb(total, with_it)


def least(group: int, others: int) -> float:
    """Return the least p-value that any trait could reach: all of the group have it, none of the others."""
    return at_least(group, group, 0, others)

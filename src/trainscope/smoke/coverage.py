"""Which batches of a data loader never reached the model: by hashes, so only where they arrive as they were given."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainscope.smoke.records import Record

LATE = 3
"""Steps after the one in which a batch was given within which it must arrive: loaders are read ahead by one or two."""
SHOWN = 5
FEW = 64
"""Samples of a rank below which nothing is said of how many of them another has."""


def coverage(record: Record) -> list[dict[str, Any]]:
    """Return for each loader of which batches arrived: how many were given and trained on, and which were not.

    Batches before the first and after the last that arrived are left out of ``dropped``: a resumed run skips the
    former, the latter were read ahead.
    """
    given = arrivals(record)
    return [found for number in sorted(given) if (found := _of_loader(given[number])) is not None]


def loaders(record: Record) -> list[dict[str, Any]]:
    """Return each different DataLoader once, and whether it is the training's.

    The training's are those of which a batch arrived in a training forward; where none is known to have, those
    that gave batches while gradients were on: some trainers evaluate with them on.
    """
    came = {number for number, batches in arrivals(record).items() if any(there for _, there in batches)}
    found: dict[tuple[str, bool], list[tuple[bool | None, list[int]]]] = {}
    for number, text, used, ordered, asked in record.end.get("loaders", ()):
        found.setdefault((text, number in came if came else used), []).append((ordered, asked))
    return [{**json.loads(text), "training": used, **_asked(alike)} for (text, used), alike in found.items()]


def _asked(alike: Sequence[tuple[bool | None, list[int]]]) -> dict[str, Any]:
    """Return in which order loaders of one description asked, and how much: of several that which asked for most."""
    orders = [ordered for ordered, _ in alike]
    counts = max((counts for _, counts in alike), key=lambda counts: counts[0])
    order = None if None in orders else all(orders)
    return {"sequential": order, **dict(zip(("asked", "different", "different_early"), counts, strict=True))}


def shared(records: Sequence[Record]) -> float | None:
    """Return which share of the first samples of the first rank another rank was given too, at most.

    None for a single rank, and where too few are known. Ranks that split an epoch share none but its padding.
    """
    first = [_first(record) for record in records]
    least = min(map(len, first))
    if len(records) < 2 or least < FEW:
        return None
    mine, *others = (set(one[:least]) for one in first)
    return max(len(mine & other) for other in others) / least


def _first(record: Record) -> Sequence[int]:
    """Return the first samples of the training loader that gave most of them."""
    listed: Sequence[Sequence[int]] = [indices for _, indices in record.end.get("indices", ())]
    return max(listed, key=len, default=())


def arrivals(record: Record) -> dict[int, list[tuple[int, bool]]]:
    """Return for each loader the step before which each batch was given, and whether it arrived."""
    arrived = [
        {value for part in row["parts"] for value in (*part["inputs"], *part["targets"])} for row in record.steps
    ]
    shared = _shared(record)
    given: dict[int, list[tuple[int, bool]]] = {}
    for step, row in enumerate(record.steps):
        near = set().union(*arrived[step : step + LATE + 1]) - shared
        for part in row["parts"]:
            for number, *hashes in part["given"]:
                given.setdefault(number, []).append((step, not near.isdisjoint(hashes)))
    return given


def _shared(record: Record) -> set[int]:
    """Return hashes that identify no batch: of several loaders, or of most batches (masks that are all ones)."""
    seen: dict[int, Counter[int]] = {}
    batches: Counter[int] = Counter()
    for row in record.steps:
        for part in row["parts"]:
            for number, *hashes in part["given"]:
                seen.setdefault(number, Counter()).update(set(hashes))
                batches[number] += 1
    often = {hash_ for number, counts in seen.items() for hash_, n in counts.items() if 2 * n > max(2, batches[number])}
    loaders = Counter(hash_ for counts in seen.values() for hash_ in counts)
    return often | {hash_ for hash_, n in loaders.items() if n > 1}


def _of_loader(batches: list[tuple[int, bool]]) -> dict[str, Any] | None:
    there = [place for place, (_, came) in enumerate(batches) if came]
    if not there:
        return None
    first, last = there[0], there[-1]
    lost = [step for step, came in batches[first : last + 1] if not came]
    return {
        "given": last + 1 - first,
        "trained": len(there),
        "dropped": len(lost),
        "skipped_at_start": first,
        "steps": list(dict.fromkeys(lost))[:SHOWN],
    }

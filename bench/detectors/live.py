"""How often the recorder's live detectors alarm in healthy losses, by rule: enough steps to know a rate of 0.1.

Runs have 300 to 3,000 steps, each tenfold as likely as another, as real ones do, and one in fifty has 20,000, where
the loss hardly falls any more: most sums of small rises are found there.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from intervals import rate
from measure import Cache
from truth import FAMILIES, SIGMAS, Family, healthy_loss

from trainscope.online import make_detector
from trainscope.online.changepoint import ChangePoint

SHORTEST, LONGEST, LONG, SHARE_LONG = 300, 3_000, 20_000, 0.02
SIMPLE = ("z_score", "percentile")
"""Detectors that alarm so often that the first block says it."""
BREAKING = "t3, AR(0.3)"
"""The noise that breaks fixed thresholds gets five times the steps."""
BLOCK = 100_000
"""Steps that are measured, and kept, at a time."""


def live_alarms(seed: int, steps: int, cache: Cache) -> dict[str, dict[str, Any]]:
    """Return for each kind of noise its steps, at least `steps`, and how many alarms which rule and detector gave."""
    out: dict[str, dict[str, Any]] = {}
    for number, f in enumerate(FAMILIES):
        whole: Counter[str] = Counter()
        block = 0
        while whole["steps"] < steps * (5 if f.name == BREAKING else 1):
            key = f"live {seed} {f.name} {block}"
            if key not in cache:
                cache.put(key, dict(_block(f, [seed, 8, number, block], () if block else SIMPLE)))
            whole.update(cache.get(key))
            block += 1
        out[f.name] = dict(whole)
    return out


def _block(f: Family, seed: list[int], beside: tuple[str, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    rng = np.random.default_rng(seed)
    number = 0
    while counts["steps"] < BLOCK:
        length = (
            LONG if rng.random() < SHARE_LONG else round(math.exp(rng.uniform(*map(math.log, (SHORTEST, LONGEST)))))
        )
        loss = healthy_loss(rng, f, SIGMAS[number % len(SIGMAS)], length).tolist()
        number += 1
        detector = ChangePoint()
        for value in loss:
            if detector.update(value) is not None:
                counts[f"rule {detector.rule}"] += 1
        for name in beside:
            other = make_detector(name, {})
            counts[name] += sum(other.update(value) is not None for value in loss)
        counts["steps"] += length
        counts["steps of all"] += length if beside else 0
    return counts


def live_table(found: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table, a row a kind of noise: alarms by rule, and the rates with exact 95 % intervals."""
    rows = ["| noise | steps | alarms | in 10,000 steps | " + " | ".join(f"`{name}`" for name in SIMPLE) + " |"]
    rows.append("| --- " * (4 + len(SIMPLE)) + "|")
    for name, counts in found.items():
        by_rule = {k.split()[1]: v for k, v in sorted(counts.items()) if k.startswith("rule ")}
        said = ", ".join(f"{n} {rule}" for rule, n in by_rule.items()) or "none"
        ours = rate(sum(by_rule.values()), counts["steps"])
        others = [f"{rate(counts[other], counts['steps of all']).value:.1f}" for other in SIMPLE]
        cells = [f"{counts['steps']:,}", said, f"{ours.value:.2f} ({ours.low:.2f} to {ours.high:.2f})", *others]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)

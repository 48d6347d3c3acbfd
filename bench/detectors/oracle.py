"""What could be found at all: single spikes, by a rule that knows the trend, the noise and its autocorrelation.

    python bench/detectors/oracle.py [--seed 12] [--healthy 600] [--planted 120]

The oracle scores a step by how far it lies off what the step before lets expect: that is as much as a rule can know
which decides at that step. Prints for each noise the share of spikes found at several rates of false alarms, beside
the best shipped rule for single spikes; thresholds are from one set of healthy runs, spikes are in others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from alarms import QUIET, WARM_UP, peaks, threshold_for
from numpy.typing import NDArray
from rules import RULES
from truth import PLANTED_IN, SIGMAS, STEPS, Family, family, healthy_loss, planted_loss, trend

FloatArray = NDArray[np.float64]
RATES = (0.1, 0.3, 1.0, 3.0)
"""False alarms per 10,000 steps of this noise."""
SHOWN = (4.0, 8.0, 16.0)
"""Heights in standard deviations of the noise."""
RULE = next(rule for rule in RULES if rule.name == "6 sigma of 128")


def oracle(loss: FloatArray, sigma: FloatArray, f: Family) -> FloatArray:
    """Return (runs, steps) innovations in their own standard deviations, of losses with noise `sigma` (runs, 1)."""
    t = np.arange(loss.shape[1], dtype=np.float64)
    noise = (loss - trend(t)) / (sigma * (1.0 + 0.5 * np.exp(-t / 300.0)))
    new = noise.copy()
    new[:, 1:] -= f.phi * noise[:, :-1]
    return np.asarray(new / np.sqrt(1.0 - f.phi**2))


def rows(f: Family, seed: int, healthy: int, planted: int) -> list[str]:
    """Return the rows of one noise: for each rate and height the share that oracle and rule find at that very step."""
    number = PLANTED_IN.index(f.name)
    quiet = [healthy_loss(np.random.default_rng([seed, 6, number, i]), f, _sigma(i)) for i in range(healthy)]
    steps = healthy * (STEPS - WARM_UP)
    spikes = {}
    for k, size in enumerate(SHOWN):
        drawn = [
            planted_loss(np.random.default_rng([seed, 7, number, k, i]), f, _sigma(i), "spike of 1 step", size)
            for i in range(planted)
        ]
        spikes[size] = np.stack([x for x, _ in drawn]), [at for _, at in drawn]
    out = []
    for per in RATES:
        cells = []
        for score in (lambda x: oracle(x, np.array([[_sigma(i)] for i in range(len(x))]), f), RULE.score):
            at = threshold_for([peaks(row[WARM_UP:]) for row in score(np.stack(quiet))], int(per * steps / 10_000))
            for losses, onsets in spikes.values():
                scores = zip(score(losses), onsets, strict=True)
                hits = [row[onset] >= at > row[onset - QUIET : onset].max() for row, onset in scores]
                cells.append(f"{np.mean(hits):.2f}")
        out.append(f"| {f.name} | {per:g} | {' | '.join(cells)} |")
    return out


def _sigma(i: int) -> float:
    return SIGMAS[i % len(SIGMAS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--healthy", type=int, default=600, help="healthy runs of each noise")
    parser.add_argument("--planted", type=int, default=120, help="runs of each height")
    options = parser.parse_args()
    heads = [f"{who}, {size:g} σ" for who in ("oracle", RULE.name) for size in SHOWN]
    print(f"| noise | false alarms per 10,000 steps | {' | '.join(heads)} |")
    print("| --- " * (2 + len(heads)) + "|")
    for name in PLANTED_IN:
        print("\n".join(rows(family(name), options.seed, options.healthy, options.planted)), flush=True)


if __name__ == "__main__":
    main()

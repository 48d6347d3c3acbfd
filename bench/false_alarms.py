"""Measure how often a healthy run gets a warning or an error.

    python bench/false_alarms.py [--replicas 40] [--seed 1] [--metrics]

Noise: Gaussian, Student-t(3), Laplace and log-normal; lag-1 autocorrelation 0, 0.3 and 0.6; 0.5 to 15 % of
the loss; 200, 2,000 and 20,000 logged steps. Prints a table a row a kind of noise, and each alarm.
"""

from __future__ import annotations

import argparse
import collections

import numpy as np
from synthetic import NOISES, Setting, healthy

from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge

LENGTHS = (200, 2_000, 20_000)
PHIS = (0.0, 0.3, 0.6)
LEVELS = (0.005, 0.015, 0.05, 0.15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=40, help="runs of each setting; a quarter at 20,000 steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--metrics", action="store_true", help="with learning rate, gradient norm, time and evaluations"
    )
    options = parser.parse_args()
    chosen = configure(Settings())
    runs: collections.Counter[tuple[str, float, int]] = collections.Counter()
    flagged: collections.Counter[tuple[str, float, int]] = collections.Counter()
    by_detector: collections.Counter[str] = collections.Counter()
    for k, (rows, kind, phi, sd) in enumerate(
        (r, n, p, s) for r in LENGTHS for n in NOISES for p in PHIS for s in LEVELS
    ):
        for i in range(options.replicas if rows < 20_000 else max(1, options.replicas // 4)):
            rng = np.random.default_rng([options.seed, k, i])
            run = healthy(rng, Setting(rows, kind, phi, sd, options.metrics))
            alarms = [f for f in judge(run, chosen).findings if f.severity >= Severity.WARNING]
            runs[kind, phi, rows] += 1
            flagged[kind, phi, rows] += bool(alarms)
            by_detector.update({f.detector for f in alarms})
            for f in alarms:
                print(f"alarm: {rows} rows, {kind}, phi {phi}, noise {sd:.1%}: {f.detector}: {f.message}")
    print(f"\n{'noise':10s} {'phi':>4s} " + " ".join(f"{n:>12,d}" for n in LENGTHS))
    for kind in NOISES:
        for phi in PHIS:
            cells = [f"{flagged[kind, phi, n]}/{runs[kind, phi, n]}" for n in LENGTHS]
            print(f"{kind:10s} {phi:4.1f} " + " ".join(f"{c:>12s}" for c in cells))
    total, bad = sum(runs.values()), sum(flagged.values())
    print(f"\nflagged {bad} of {total} healthy runs = {bad / total:.2%}; by detector: {dict(by_detector)}")


if __name__ == "__main__":
    main()

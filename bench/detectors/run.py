"""Measure every detector: false alarms, detection and delay, beside the rules that other tools ship.

    python bench/detectors/run.py [--cache FOLDER] [--seed 9] [--healthy 8] [--planted 8] [--replicas 60]
                                  [--organic FOLDER] [--peers PYTHON] [--charts FILE] [--write]

Prints the tables of docs/evidence.md; `--write` puts them there, and the figures of each detector into the table that
`trainscope explain` reads. What was measured before with the same options is taken from the cache.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from detectors.measure import Cache, Size, healthy_pieces, planted_pieces
from detectors.compare import comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("out/detectors"), help="folder of what was measured")
    parser.add_argument("--seed", type=int, default=9, help="1 to 8 are for development")
    parser.add_argument("--healthy", type=int, default=8, help="healthy runs of each kind of noise")
    parser.add_argument("--planted", type=int, default=8, help="runs of each fault, size and noise")
    options = parser.parse_args()
    size = Size(options.seed, options.healthy, options.planted)
    cache = Cache(options.cache / "curves.jsonl")
    print(comparison(dict(healthy_pieces(size, cache)), list(planted_pieces(size, cache))))


if __name__ == "__main__":
    main()

"""Measure every detector: false alarms, detection and delay, beside the rules that other tools ship.

    python bench/detectors/run.py [--cache FOLDER] [--seed 9] [--healthy 21] [--planted 6] [--runs 200]
                                  [--part curves|each|live|both] [--steps 200000]
                                  [--replicas 60] [--recordings FOLDER] [--curves FILE] [--write]
    python bench/detectors/run.py --part structural [--trainings FOLDER] [--seeds 0 1 2 3 4] [--judge]
                                  [--gate FOLDER] [--write]

Prints the tables of docs/evidence.md. ``--recordings`` is the cache of ``bench/diagnosis/run.py``, where there is one.
``--write`` puts the figures of each detector into the table that ``trainscope explain`` reads. What was measured
before with the same options is taken from the cache; seeds 1 to 8 are for development. The second form measures the
exact detectors on small trainings of ``bench/structural``, 2 s of CPU each, finished ones kept in ``--trainings``;
``--gate`` is the cache of ``bench/gate.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diagnosis"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compare import comparison
from curves import draw, points, table
from each import detector_table, figures, healthy_policies, healthy_runs, planted_runs, recordings
from live import live_alarms, live_table
from measure import Cache, Size, calibration_pieces, healthy_pieces, planted_pieces
from structural import KEY, counted, in_gate, kept, record, structural_table

from trainscope.detectors.measured import FIGURES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path("out/detectors"), help="folder of what was measured")
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--healthy", type=int, default=21, help="healthy curves of each kind of noise")
    parser.add_argument("--planted", type=int, default=6, help="curves of each fault, size and noise")
    parser.add_argument("--calibration", type=int, default=1200, help="healthy curves of a noise that only rules judge")
    parser.add_argument(
        "--runs", type=int, default=200, help="healthy logs that every detector judges; of policies four times as many"
    )
    parser.add_argument("--replicas", type=int, default=60, help="logs of each fault of bench/planted.py, in twenties")
    parser.add_argument("--recordings", type=Path, help="the cache of bench/diagnosis/run.py")
    parser.add_argument("--part", choices=("curves", "each", "live", "both", "structural"), default="both")
    parser.add_argument("--steps", type=int, default=200_000, help="of each noise that the live detectors watch")
    parser.add_argument("--trainings", type=Path, default=Path("out/structural"), help="small trainings that are done")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of the small trainings")
    parser.add_argument("--judge", action="store_true", help="train nothing: judge the small trainings that are there")
    parser.add_argument("--gate", type=Path, help="the cache of bench/gate.py")
    parser.add_argument("--curves", type=Path, help="write the curves of delay against false alarms (HTML, SVG or PNG)")
    parser.add_argument("--write", action="store_true", help="rewrite src/trainscope/detectors/measured.json")
    options = parser.parse_args()
    if options.part == "live":
        print(live_table(live_alarms(options.seed, options.steps, Cache(options.cache / "live.jsonl"))))
        return
    if options.part == "structural":
        structural(options)
        return
    if options.part != "each":
        size = Size(options.seed, options.healthy, options.planted)
        cache = Cache(options.cache / "curves.jsonl")
        healthy, planted = dict(healthy_pieces(size, cache)), list(planted_pieces(size, cache))
        calibration = dict(calibration_pieces(options.seed, options.calibration, cache))
        rows = points(healthy, planted)
        print(
            comparison(healthy, planted, calibration),
            "### Mean delay against false alarms per 10,000 steps",
            table(rows),
            sep="\n\n",
        )
        if options.curves:
            draw(rows, options.curves)
    if options.part != "curves":
        each(options)


def each(options: argparse.Namespace) -> None:
    """Measure the detectors one by one, print the table, and keep it where `trainscope explain` finds it."""
    cache = Cache(options.cache / "each.jsonl")
    healthy = healthy_runs(options.seed, options.runs, cache)
    policies = healthy_policies(options.seed, 4 * options.runs, cache)
    planted = planted_runs(options.seed, options.replicas, cache)
    recorded, controls = [], set()
    if options.recordings:
        from faults import HEALTHY

        recorded, controls = list(recordings(options.recordings, cache)), set(HEALTHY)
    table = figures(healthy, policies, planted, recorded, controls)
    print(f"\nhealthy logs flagged: {healthy['flagged']} of {healthy['runs']}\n")
    print(detector_table(table))
    if options.write:
        command = f"bench/detectors/run.py --seed {options.seed} --runs {options.runs} --replicas {options.replicas}"
        if options.recordings:
            command += " --recordings out/diagnosis"
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        write({KEY: known[KEY], "command": command, "detectors": kept(table, {})})


def structural(options: argparse.Namespace) -> None:
    """Train what is missing, judge it, print the table, and keep it beside what `each` measured."""
    if not options.judge:
        record(options.trainings, options.seeds)
    fresh = counted(options.trainings, options.seeds)
    if options.gate:
        for detector, found in in_gate(options.gate).items():
            fresh[detector]["gate"] = found
    print(structural_table(fresh))
    if options.write:
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        command = f"bench/detectors/run.py --part structural --seeds {' '.join(map(str, options.seeds))}"
        if options.gate:
            command += " --gate out/gate"
        write({**known, KEY: command, "detectors": kept(known["detectors"], fresh)})


def write(figures: dict[str, object]) -> None:
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

"""Runs the gate benchmark with the log-only gates and with trainscope, and prints them side by side.

    python bench/gate.py --cache FOLDER [--shared FOLDER] [--split dev] [-j 2] [--gate trainscope] [--trainer chargpt]

The benchmark lies beside the checkout, in ``shared/bench/gate``: small training repositories, each with bugs and
harmless changes. A run takes 3 to 9 s of CPU time; finished runs are kept in the cache. One training a core at most:
more distort the CPU times that one of the comparisons judges.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = "-- {python} {script} --seed {seed} --steps {steps} --out {outdir}/user"
CI = "{python} -m trainscope ci --out {outdir}/ts"
TRAINSCOPE = [
    "--gate", f'{CI} --fail-on warning --baseline "{{baseline}}/ts" {SCRIPT}',
    "--record", f"{CI} --fail-on never {SCRIPT}",
]  # fmt: skip
GATES = {
    "loss within 5 % (golden values)": ["--gate", "loss-only"],
    "paired loss": ["--gate", "paired"],
    "paired loss, gradient norm, LR, eval": ["--gate", "metrics"],
    "trainscope ci": TRAINSCOPE,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--cache", type=Path, required=True, help="where finished runs are kept")
    parser.add_argument("--gate", action="append", choices=[*GATES, "trainscope"], help="only these; default: all")
    parser.add_argument("--trainer", action="append", default=[])
    parser.add_argument("-j", type=int, default=1)
    args = parser.parse_args()
    bench = args.shared / "bench" / "gate" / "run_gate_bench.py"
    if not bench.is_file():
        sys.exit(f"{bench}: not there; the benchmark lies in shared/ beside the checkout")
    args.cache.mkdir(parents=True, exist_ok=True)
    chosen = [{"trainscope": "trainscope ci"}.get(g, g) for g in args.gate or GATES]
    print("| gate | bugs found | error-level bugs | false alarms | borderline flagged |")
    print("|---|---|---|---|---|")
    for name in chosen:
        out = args.cache / "result.json"
        command = [sys.executable, str(bench), "--split", args.split, "--cache", str(args.cache), "-j", str(args.j)]
        command += ["--python", sys.executable, "--json", str(out), *GATES[name]]
        for trainer in args.trainer:
            command += ["--trainer", trainer]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(row(name, json.loads(out.read_text(encoding="utf-8"))), flush=True)
        print(done.stdout, file=sys.stderr)


def row(name: str, results: dict[str, dict[str, object]]) -> str:
    """Return one line of the table; a gate that could not judge misses a bug and alarms on a benign change."""
    groups = {"bug": [], "error": [], "benign": [], "borderline": []}
    for result in results.values():
        caught = result["verdict"] == "fail"
        if result["kind"] == "bug" and result["severity"] == "error":
            groups["error"].append(caught)
        groups[str(result["kind"])].append(caught if result["kind"] != "benign" else result["verdict"] != "pass")
    cells = []
    for key in ("bug", "error", "benign", "borderline"):
        hits, n = sum(groups[key]), len(groups[key])
        cells.append(f"{hits}/{n}" + (f" = {100 * hits / n:.0f} %" if n and key != "borderline" else ""))
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()

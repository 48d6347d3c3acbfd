"""Measure what a smoke run costs over the plain script, and check the budget.

    python bench/smoke_overhead.py [--pairs 3]

200 steps of a 0.4M-parameter GPT, plain and under `trainscope smoke`, interleaved; CPU time of the whole process
tree, because wall time on a shared machine says nothing. Budget: 1.15 times the script's own time plus 3 seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tests" / "smoke" / "scripts" / "gpt.py"
SHARE, SECONDS = 1.15, 3.0


def cpu_seconds(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    script = (sys.executable, str(SCRIPT), "200")
    with tempfile.TemporaryDirectory() as out:
        smoke = (sys.executable, "-m", "trainscope", "smoke", "--steps", "200", "--out", out, "--", *script)
        pairs = [(cpu_seconds(*script), cpu_seconds(*smoke)) for _ in range(options.pairs)]
    plain, recorded = min(p for p, _ in pairs), min(r for _, r in pairs)
    limit = SHARE * plain + SECONDS
    verdict = "ok" if recorded <= limit else "MISSED"
    print(f"plain {plain:.1f} s, smoke {recorded:.1f} s of CPU (at most {limit:.1f}) {verdict}")
    return 0 if recorded <= limit else 1


if __name__ == "__main__":
    raise SystemExit(main())

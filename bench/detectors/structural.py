"""Misses of the exact detectors: small trainings with one planted fault each, and healthy ones that look like it.

Recorded as ``trainscope smoke`` records an unchanged script, but in copies of one process that has imported torch
(``tests/warm.py``), which saves three seconds a training.
"""

from __future__ import annotations

import collections
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainscope.core.errors import TrainscopeError
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.detectors.measured import FIGURES
from trainscope.readers import read_runs
from trainscope.smoke.command import Wish
from trainscope.smoke.run import smoke

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS, WARM = ROOT / "bench" / "structural", ROOT / "tests" / "warm.py"
sys.path.insert(0, str(SCRIPTS))

from cases import CASES, IN_GATE, SAYS, Cases  # noqa: E402
from expected import expectations  # noqa: E402

KEY = "structural"
"""Of these figures in the table beside the detectors."""
Command = Callable[[Sequence[str]], tuple[str, ...]]


@contextlib.contextmanager
def warm() -> Iterator[Command]:
    """Turn a script and its arguments into a command that a copy of a process with torch runs."""
    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder) / "s"
        serve = [sys.executable, str(WARM), "serve", str(address)]
        with subprocess.Popen(serve, stdin=subprocess.PIPE) as server:
            while not address.exists():
                if server.poll() is not None:
                    sys.exit("the process that keeps torch did not start")
                time.sleep(0.05)
            yield lambda words: (sys.executable, "-I", "-S", str(WARM), "run", str(address), *words)
            assert server.stdin is not None
            server.stdin.close()


def record(folder: Path, seeds: Sequence[int]) -> None:
    """Train whatever is not in the folder yet."""
    everything = [(d, v, seed) for seed in seeds for d, cases in CASES.items() for v in (*cases.faults, *cases.healthy)]
    missing = [
        (detector, variant, seed)
        for detector, variant, seed in everything
        if not place(folder, detector, variant, seed).exists() and (variant, seed % 3) not in CASES[detector].without
    ]
    with warm() as command:
        for detector, variant, seed in missing:
            _record(place(folder, detector, variant, seed), CASES[detector], variant, seed, command)


def place(folder: Path, detector: str, variant: str, seed: int) -> Path:
    return folder / detector / f"{variant}-{seed}"


def _record(out: Path, cases: Cases, variant: str, seed: int, command: Command) -> None:
    words = command([str(SCRIPTS / f"{cases.script}.py"), variant, "--seed", str(seed)])
    if cases.ranks > 1:
        words = (sys.executable, "-I", "-S", str(SCRIPTS / "two.py"), *words)
    try:
        smoke(Wish(words, steps=10_000, timeout=600.0), out, lambda _done, _wanted: None)
    except TrainscopeError as error:
        shutil.rmtree(out, ignore_errors=True)
        sys.exit(f"{cases.script} {variant}, seed {seed}: {error}")


def said(folder: Path) -> list[tuple[Run, list[Finding]]]:
    """Return the runs of a recording, each with what the gate would fail on."""
    chosen = configure(Settings())
    runs = read_runs(str(folder))
    return [(run, [f for f in judge(run, chosen).findings if f.severity >= Severity.WARNING]) for run in runs]


def is_found(detector: str, variant: str, told: Sequence[tuple[Run, list[Finding]]]) -> bool:
    """Tell whether a detector spoke, and where it has to name a place, named the right one."""
    own = [f for _, findings in told for f in findings if f.detector == detector]
    if detector != "non_finite_origin":
        return bool(own)
    words, step = SAYS[variant]
    return any(words in f.message and step in (None, f.start_step) for f in own)


def counted(folder: Path, seeds: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return what each detector found, missed and flagged, fit for the table beside the detectors."""
    faults: dict[str, dict[str, list[bool]]] = {d: {v: [] for v in cases.faults} for d, cases in CASES.items()}
    elsewhere: collections.Counter[str] = collections.Counter()
    quiet: dict[str, dict[str, list[set[str]]]] = {d: {v: [] for v in cases.healthy} for d, cases in CASES.items()}
    for detector, cases in CASES.items():
        for variant in (*cases.faults, *cases.healthy):
            for seed in seeds:
                one = place(folder, detector, variant, seed)
                if not one.exists():
                    continue
                told = said(one)
                speaking = {f.detector for _, findings in told for f in findings}
                if variant in cases.healthy:
                    quiet[detector][variant].append(speaking)
                    continue
                found = is_found(detector, variant, told)
                faults[detector][variant].append(found)
                elsewhere[detector] += not found and bool(speaking - {detector})
    seen = {d: {kind: found for kind, found in kinds.items() if found} for d, kinds in quiet.items()}
    return {d: _entry(d, faults[d], elsewhere[d], seen) for d in CASES} | expectations(folder, seeds, said)


def _entry(
    detector: str, faults: Mapping[str, list[bool]], elsewhere: int, quiet: Mapping[str, Mapping[str, list[set[str]]]]
) -> dict[str, Any]:
    def flagged(kinds: Mapping[str, list[set[str]]]) -> dict[str, Any]:
        each = {name: sum(detector in one for one in found) for name, found in kinds.items()}
        whole = {"flagged": sum(each.values()), "runs": sum(map(len, kinds.values())), "kinds": len(kinds)}
        return whole | {"which": {name: count for name, count in each.items() if count}}

    others = {f"{d} {v}": found for d, kinds in quiet.items() if d != detector for v, found in kinds.items()}
    return {
        "faults": {
            "runs": sum(map(len, faults.values())),
            "missed": sum(not one for found in faults.values() for one in found),
            "elsewhere": elsewhere,
            "each": {name: {"found": sum(found), "runs": len(found)} for name, found in faults.items() if found},
        },
        "alike": flagged(quiet[detector]),
        "others": flagged(others),
    }


def in_gate(cache: Path) -> dict[str, dict[str, Any]]:
    """Judge, each by itself and without a baseline, the recordings that ``bench/gate.py`` left in its cache."""
    labels = json.loads(next(cache.rglob("labels.json"), ROOT.parent / "shared/bench/gate/dev/labels.json").read_text())
    told = {}
    for trainer, entry in labels.items():
        for variant, label in entry["variants"].items():
            runs = sorted(cache.rglob(f"{trainer}/{variant}/*/ts"))
            folder = runs[0] if runs else None
            if folder is not None:
                told[f"{trainer} {variant}"] = (label["kind"], {f.detector for _, found in said(folder) for f in found})
    benign = [found for kind, found in told.values() if kind == "benign"]
    return {
        detector: {
            "each": {name: detector in told[name][1] for name in names if name in told},
            "flagged": sum(detector in found for found in benign),
            "benign": len(benign),
        }
        for detector, names in IN_GATE.items()
    }


def kept(table: Mapping[str, dict[str, Any]], fresh: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a table of detectors with the figures of this part: the fresh ones, else those that were written last."""
    old = json.loads(FIGURES.read_text(encoding="utf-8"))["detectors"]
    found = {}
    for name, entry in table.items():
        own = fresh.get(name) or old.get(name, {}).get(KEY)
        found[name] = {k: v for k, v in entry.items() if k not in (KEY, "why_not")} | {KEY: own} if own else entry
    return found


def cell(figures: Mapping[str, Any]) -> str:
    """Return misses for the table of detectors."""
    faults = figures["faults"]
    whole = sum(one["found"] == 0 for one in faults["each"].values())
    return f"{faults['missed']}/{faults['runs']} ({whole} of {len(faults['each'])} kinds)"


def structural_table(table: Mapping[str, dict[str, Any]]) -> str:
    """Return a Markdown table, a row a detector."""
    rows = ["| detector | missed | kinds missed, in whole or part | healthy look-alikes flagged | other healthy |"]
    rows.append("| --- | --- | --- | --- | --- |")
    for name, e in table.items():
        each = e["faults"]["each"]
        missed = ", ".join(
            f"{kind} {one['runs'] - one['found']}/{one['runs']}"
            for kind, one in each.items()
            if one["found"] < one["runs"]
        )
        alike, others = e["alike"], e["others"]
        which = ", ".join(f"{kind} {count}" for kind, count in {**alike["which"], **others["which"]}.items())
        flagged = f"{alike['flagged']}/{alike['runs']}{f' ({which})' if which else ''}"
        faults = f"{e['faults']['missed']}/{e['faults']['runs']} of {len(each)} kinds"
        rows.append(f"| `{name}` | {faults} | {missed} | {flagged} | {others['flagged']}/{others['runs']} |")
    return "\n".join(rows)

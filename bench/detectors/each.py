"""False alarms and misses of each detector by itself."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from intervals import rate, share
from measure import Cache
from more_faults import MORE_FAULTS
from ours import CHOSEN
from owners import INFORM, NOT_IN_RECORDINGS, OF_POLICIES, PLANTED, TRAINED, WHY_NOT
from planted import FAULTS
from planting import Fault
from policies import healthy_policy
from structural import KEY, cell
from synthetic import Setting, healthy

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run, Series
from trainscope.detectors import DETECTORS, judge
from trainscope.detectors.base import Skipped
from trainscope.readers import read_runs

NOISE = ("t3", 0.3)
"""Student-t noise with three degrees of freedom and lag-1 autocorrelation 0.3: what breaks fixed thresholds."""
LEVELS = (0.005, 0.015, 0.05, 0.15)
ROWS, BLOCK = 2_000, 20


def alarms(run: Run) -> list[Finding]:
    return [f for f in judge(run, CHOSEN).findings if f.severity >= Severity.WARNING or f.detector in INFORM]


def _is_flagged(found: list[Finding]) -> bool:
    return any(f.severity >= Severity.WARNING for f in found)


def by_themselves(run: Run) -> list[str]:
    """Return the detectors that alarm when nobody asks the others: what one of them calls part of an event counts."""
    found = ((one, one.detector.detect(run, one.params)) for one in CHOSEN)
    return [
        one.detector.id
        for one, said in found
        if not isinstance(said, Skipped) and any(f.severity >= Severity.WARNING for f in said)
    ]


def healthy_runs(seed: int, runs: int, cache: Cache) -> dict[str, Any]:
    """Judge healthy logs with rate, gradient norm, times, memory, epochs and evaluations; count alarms by detector."""
    return _counted("healthy", _healthy, seed, runs, cache)


def healthy_policies(seed: int, runs: int, cache: Cache) -> dict[str, Any]:
    """Judge healthy logs of reinforcement learning and preference optimisation in the same way."""
    return _counted("policies", _policy, seed, runs, cache)


def _counted(kind: str, make: Callable[[int, int], Run], seed: int, runs: int, cache: Cache) -> dict[str, Any]:
    by_detector: collections.Counter[str] = collections.Counter()
    flagged = steps = 0
    for block in range(0, runs, BLOCK):
        key = f"each {kind} {seed} {block}"
        if key not in cache:
            made = [make(seed, i) for i in range(block, block + BLOCK)]
            found = [alarms(run) for run in made]
            counts = collections.Counter(f.detector for one in found for f in one)
            rows = sum(max(map(len, run.series.values())) for run in made)
            cache.put(key, {"alarms": dict(counts), "flagged": sum(map(_is_flagged, found)), "steps": rows})
        by_detector.update(cache.get(key)["alarms"])
        flagged += cache.get(key)["flagged"]
        steps += cache.get(key).get("steps", BLOCK * ROWS)
    return {"alarms": dict(by_detector), "flagged": flagged, "runs": -(-runs // BLOCK) * BLOCK, "steps": steps}


def _policy(seed: int, i: int) -> Run:
    return healthy_policy(np.random.default_rng([seed, 5, i]))


def _healthy(seed: int, i: int) -> Run:
    setting = Setting(ROWS, *NOISE, sd=LEVELS[i % len(LEVELS)])
    run = healthy(np.random.default_rng([seed, 3, i]), setting)
    return replace(run, series={**run.series, **_beside(run, np.random.default_rng([seed, 6, i]))})


def _beside(run: Run, rng: np.random.Generator) -> dict[str, Series]:
    """Return what many logs have beside the metrics of a healthy run: 2 to 15 epochs, waiting for data, memory."""
    loss, seconds = run.series["train/loss"], run.series["train/step_time"].value
    n, step = len(loss), loss.step
    epoch = rng.uniform(2.0, 15.0) * np.arange(n) / n
    epoch = (np.floor(epoch), np.round(epoch, 2), epoch)[int(rng.integers(3))]
    wait = seconds * np.minimum(1.0, rng.uniform(0.005, 0.1) * np.exp(0.7 * rng.normal(size=n)))
    settle = 1.0 - rng.uniform(0.0, 0.5) * np.exp(-np.arange(n) / rng.uniform(5.0, 0.1 * n))
    memory = rng.uniform(800, 80_000) * settle * np.exp(rng.uniform(0.0, 0.05) * rng.normal(size=n))
    if rng.random() < 0.5:  # the peak so far
        memory = np.maximum.accumulate(memory)
    values = {"epoch": epoch, "data_time": wait, "memory_allocated": memory}
    return {name: Series(name, step, value) for name, value in values.items()}


def planted_runs(seed: int, replicas: int, cache: Cache) -> dict[str, dict[str, int]]:
    """Return for each fault how many runs its own detector found, another that may name it, and none.

    Twenty runs are too few: with one seed nothing at all was missed in the first twenty of each fault, and with others
    two in ten of some. More `replicas` go on with the same seed, and all that were drawn count.
    """
    owner = {fault: detector for detector, faults in PLANTED.items() for fault in faults}
    out: dict[str, dict[str, int]] = {}
    for number, fault in enumerate((*FAULTS, *MORE_FAULTS)):
        whole: collections.Counter[str] = collections.Counter(own=0, other=0, none=0)
        for block in range(0, replicas, BLOCK):
            key = f"each planted {seed} {fault.__name__} {block}"
            if key not in cache:
                cache.put(key, dict(_outcomes(fault, owner[fault.__name__], seed, number, block)))
            whole.update(cache.get(key))
        out[fault.__name__] = dict(whole)
    return out


def _outcomes(fault: Fault, owner: str, seed: int, number: int, block: int) -> collections.Counter[str]:
    outcomes: collections.Counter[str] = collections.Counter(own=0, other=0, none=0)
    for i in range(block, block + BLOCK):
        run, kinds, begin, end = fault(np.random.default_rng([seed, 4, number, i]))
        margin = 0.03 * float(run.last_step or 0)
        right = {
            f.detector
            for f in alarms(run)
            if f.detector in kinds and f.start_step is not None and f.end_step is not None
            and f.end_step >= begin - margin and f.start_step <= end + margin
        }  # fmt: skip
        outcomes["own" if owner in right else "other" if right else "none"] += 1
    return outcomes


def recordings(folder: Path, cache: Cache) -> Iterator[tuple[str, str, list[str]]]:
    """Yield fault, way of recording and the detectors that speak, for each training of ``bench/diagnosis/run.py``."""
    for one in sorted(folder.iterdir()):
        name = one.name.rpartition("-")[0]
        for door in ("recorder", "smoke"):
            if not (one / door).is_dir():
                continue
            key = f"each recorded alone {one.name} {door}"
            if key not in cache:
                cache.put(key, sorted({id for run in read_runs(str(one / door)) for id in by_themselves(run)}))
            yield name, door, cache.get(key)


def figures(
    healthy_: dict[str, Any],
    policies: dict[str, Any],
    planted: dict[str, dict[str, int]],
    recorded: list[tuple[str, str, list[str]]],
    controls: set[str],
) -> dict[str, Any]:
    """Return what was measured of each detector, as the table beside the detectors holds it."""
    quiet = [found for name, _, found in recorded if name in controls]
    table: dict[str, Any] = {}
    for detector in DETECTORS:
        entry: dict[str, Any] = {}
        if detector.id in PLANTED:
            logs = policies if detector.id in OF_POLICIES else healthy_
            count, steps = logs["alarms"].get(detector.id, 0), logs["steps"]
            entry["logs"] = {"alarms": count, "steps": steps, "high": round(rate(count, steps).high, 4)}
            entry["faults"] = _faults({f: planted[f] for f in PLANTED[detector.id]})
        if quiet and detector.id not in NOT_IN_RECORDINGS:
            flagged = sum(detector.id in found for found in quiet)
            entry["recordings"] = {
                "flagged": flagged,
                "runs": len(quiet),
                "high": round(share(flagged, len(quiet)).high, 4),
            }
        if detector.id in TRAINED:
            entry["trainings"] = _trainings(detector.id, recorded)
        if detector.id in WHY_NOT:
            entry["why_not"] = WHY_NOT[detector.id]
        table[detector.id] = entry
    return table


def _faults(planted: dict[str, dict[str, int]]) -> dict[str, Any]:
    runs = sum(sum(f.values()) for f in planted.values())
    missed = sum(f["none"] for f in planted.values())
    bounds = share(missed, runs)
    each = {name: {"found": f["own"] + f["other"], "runs": sum(f.values())} for name, f in planted.items()}
    return {
        "runs": runs,
        "missed": missed,
        "low": round(bounds.low, 4),
        "high": round(bounds.high, 4),
        "other": sum(f["other"] for f in planted.values()),
        "each": each,
    }


def _trainings(detector: str, recorded: list[tuple[str, str, list[str]]]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for fault in TRAINED[detector]:
        found = [detector in said for name, _, said in recorded if name == fault]
        if found:
            out[fault] = {"found": sum(found), "runs": len(found)}
    return out


def detector_table(table: dict[str, Any]) -> str:
    """Return a Markdown table, a row a detector."""
    rows = ["| detector | false alarms per 10,000 steps (at most) | healthy recordings flagged | faults missed |"]
    rows.append("| --- | --- | --- | --- |")
    for name, e in table.items():
        logs = f"{e['logs']['alarms']} in {e['logs']['steps']:,} ({e['logs']['high']:.2f})" if "logs" in e else ""
        quiet = f"{e['recordings']['flagged']}/{e['recordings']['runs']}" if "recordings" in e else ""
        if name in NOT_IN_RECORDINGS:
            quiet = "none to judge"
        missed = f"{e['faults']['missed']}/{e['faults']['runs']}" if "faults" in e else ""
        for fault, f in e.get("trainings", {}).items():
            missed += f" {fault} {f['runs'] - f['found']}/{f['runs']}"
        if KEY in e:
            missed += f" {cell(e[KEY])}"
        rows.append(f"| `{name}` | {logs} | {quiet} | {missed.strip() or 'not measured here'} |")
    return "\n".join(rows)

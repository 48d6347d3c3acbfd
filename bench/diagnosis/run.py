"""Measure whether the cause that a story puts first is the fault that was put in.

    python bench/diagnosis/run.py --cache FOLDER [--seeds 2 3 4 5 6] [--only rate_spike] [--record]

Trains a small GPT with each fault of ``faults.py`` and with changes that are none: with the Python recorder or as an
unchanged script under ``trainscope smoke``, whichever the fault needs, and with the log that any script writes. Each
is judged as ``trainscope analyze`` would (the faults that only a baseline can show as ``trainscope ci`` would), and
its stories are compared with the truth. A training takes 10 s of CPU; finished ones are kept in the cache.
Exit code 1 where fewer than nine in ten name their cause first, a layer is missed, or a healthy run gets a cause.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faults import HEALTHY, RECIPES, Recipe

from trainscope.core.settings import Settings
from trainscope.detectors import configure, judge
from trainscope.diagnosis.compare import compare_runs
from trainscope.diagnosis.story import tell
from trainscope.readers import read_runs

HERE = Path(__file__).parent
DOORS = {"recorder": "recorder", "smoke": "smoke", "log": "log.jsonl"}
"""Kind of recording to its place in the cache."""
ENOUGH = 0.9


def record(name: str, seed: int, cache: Path) -> None:
    """Train, unless the cache has it: under the recorder, under ``trainscope smoke``, a healthy run under both."""
    folder = cache / f"{name}-{seed}"
    if (folder / "done").is_file():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, recorder = folder / DOORS["log"], folder / DOORS["recorder"]
    if RECIPES[name].door == "recorder" and name not in HEALTHY:
        import train

        train.run(name, seed, train.STEPS, log, recorder)
    else:
        script = [sys.executable, str(HERE / "train.py"), name, "--seed", str(seed), "--log", str(log)]
        script += ["--record", str(recorder)] if name in HEALTHY else []
        command = [sys.executable, "-m", "trainscope", "smoke", "--steps", "300", "--out", str(folder), "--", *script]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}, seed {seed}: {done.stderr}")
    (folder / "done").touch()


@dataclass(frozen=True, slots=True)
class Told:
    """What the stories of one recording say."""

    cause: str | None
    """Of the first story that has one."""
    where: str | None
    weight: float
    stories: int
    others: int
    """Later stories that claim another cause."""
    lead: int | None


def told(folder: Path, door: str, baseline: Path | None = None) -> Told:
    """Judge a recording and tell its stories."""
    run = read_runs(str(folder / DOORS[door]))[0]
    settings = Settings()
    findings = list(judge(run, configure(settings)).findings)
    if baseline is not None:
        findings += compare_runs(run, [read_runs(str(baseline / DOORS[door]))[0]], settings).findings
    stories = tell(run, findings)
    sure = [s for s in stories if s.explanations]
    if not sure:
        return Told(None, None, 0.0, len(stories), 0, None)
    first = sure[0]
    top = first.explanations[0]
    others = sum(s.cause != first.cause for s in sure[1:])
    return Told(str(top.cause), first.parameter or first.layer, top.weight, len(stories), others, first.lead)


def is_right(recipe: Recipe, one: Told) -> bool:
    """Tell whether the first cause is the one that was put in; for a healthy run, whether there is none."""
    return one.cause in recipe.causes if recipe.causes else one.cause is None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="where finished trainings are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--only", nargs="+", choices=[*RECIPES], default=[*RECIPES])
    parser.add_argument("--record", action="store_true", help="only record")
    options = parser.parse_args()
    needed = [
        *dict.fromkeys(
            (*options.only, *(["control"] if any(RECIPES[n].door == "baseline" for n in options.only) else []))
        )
    ]
    for seed in options.seeds:
        for name in needed:
            record(name, seed, options.cache)
            if options.record:
                print(name, seed, flush=True)
    return 0 if options.record else report(options.only, options.seeds, options.cache)


def row(name: str, recipe: Recipe, seen: Sequence[Told], where: Sequence[bool], log: Sequence[Told]) -> str:
    """Return one line of the table."""

    def of(found: Sequence[Told]) -> str:
        return f"{sum(is_right(recipe, one) for one in found)}/{len(found)}"

    what = f"{recipe.what} (`{name}`)" + (", leaves no trace" if recipe.traceless else "")
    door = recipe.door if recipe.causes else "recorder, smoke"
    layer = f"{sum(where)}/{len(where)}" if where else ""
    leads = ", ".join(dict.fromkeys(str(one.lead) for one in sorted(seen, key=_lead) if one.lead is not None))
    return f"| {what} | {door} | {of(seen)} | {layer} | {of(log)} | {leads} |"


def _lead(one: Told) -> int:
    return one.lead or 0


def report(names: Sequence[str], seeds: Sequence[int], cache: Path) -> int:
    """Print the table and the three figures; return the exit code."""
    print("| put in | seen by | named first | layer | by the log alone | lead over the loss |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    right, placed, quiet = [], [], []
    for name in names:
        recipe = RECIPES[name]
        log = [told(cache / f"{name}-{s}", "log") for s in seeds]
        if name in HEALTHY:
            seen = [told(cache / f"{name}-{s}", door) for door in ("recorder", "smoke") for s in seeds]
            quiet += [is_right(recipe, one) for one in (*seen, *log)]
        elif recipe.door == "baseline":
            seen = [told(cache / f"{name}-{s}", "smoke", cache / f"control-{s}") for s in seeds]
        else:
            seen = [told(cache / f"{name}-{s}", recipe.door) for s in seeds]
        good = [is_right(recipe, one) for one in seen]
        where = [(one.where or "").startswith(recipe.layer) for one in seen] if recipe.layer is not None else []
        if name not in HEALTHY and not recipe.traceless:
            right += good
            placed += where
        print(row(name, recipe, seen, where, log), flush=True)
        for one, fine in zip(seen, good, strict=True):
            if not fine and not recipe.traceless:
                print(f"{name}: {one}", file=sys.stderr)
    print()
    figures = (
        ("cause named first", right),
        ("layer named first", placed),
        ("healthy recordings without a cause", quiet),
    )
    print("; ".join(f"{what}: {sum(found)}/{len(found)}" for what, found in figures))
    enough = sum(right) >= ENOUGH * len(right) and sum(placed) >= ENOUGH * len(placed)
    return 0 if enough and all(quiet) else 1


if __name__ == "__main__":
    raise SystemExit(main())

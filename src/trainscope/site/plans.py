"""How to train a run again, as its page offers it."""

from __future__ import annotations

from pathlib import Path

from trainscope.core import facts
from trainscope.diagnosis.case import Case
from trainscope.replay.checkpoints import FOLDERS, Checkpoint, of_run
from trainscope.replay.config import ReplayConfig, Source
from trainscope.replay.plan import Places, plan
from trainscope.report.build import portable
from trainscope.report.document import RunEntry


def plan_for(case: Case, entry: RunEntry) -> ReplayConfig | None:
    """Return the plan of a run, None where nothing happened to it.

    Paths in it are those of the document: what a page names must mean the same on another machine.
    """
    run = case.run
    folder = Path(run.source)
    checkpoints, states = (_named(of_run(folder, kind)) for kind in FOLDERS)
    places = Places(checkpoints, states)
    numbers = {key: facts.number(run, f"smoke.{key}") for key in ("seed", "steps_wanted")}
    source = Source(
        id=entry.id,
        name=entry.name,
        path=portable(run.source),
        seed=None if numbers["seed"] is None else int(numbers["seed"]),
        steps=None if numbers["steps_wanted"] is None else int(numbers["steps_wanted"]),
    )
    return plan(run, case.findings, case.stories, places, source=source)


def _named(found: list[Checkpoint]) -> list[Checkpoint]:
    return [Checkpoint(one.step, portable(one.path)) for one in found]

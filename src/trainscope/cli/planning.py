"""How a run becomes a plan to train again, for the commands that write one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.core.errors import ConfigError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.core.settings import Settings
    from trainscope.replay.config import ReplayConfig, Source
    from trainscope.replay.plan import Places
    from trainscope.report.build import Judged
    from trainscope.report.pipeline import Analysis


def plan_of(run: Run, folder: Path, settings: Settings, file: Path, places: Places) -> ReplayConfig | None:
    """Judge a run, tell its story and plan from it; None where nothing happened.

    Parameters
    ----------
    folder : Path
        Where the run was read from.
    file : Path
        Where the plan will be written.

    Raises
    ------
    ConfigError
        If something happened, and the log counts no steps.
    """
    from trainscope.detectors import configure, judge
    from trainscope.diagnosis.compare import IDS
    from trainscope.replay.plan import NO_STEPS
    from trainscope.report.build import Judged
    from trainscope.report.cases import case_of

    one = Judged(run, judge(run, configure(settings, others=IDS)))
    if run.x_axis != "step" and case_of(one).stories:
        raise ConfigError(f"--run {folder}: {NO_STEPS.format(axis=run.x_axis)}")
    return _plan_of_judged(one, folder, file, places)


def _plan_of_judged(one: Judged, folder: Path, file: Path, places: Places) -> ReplayConfig | None:
    from trainscope.replay.plan import plan
    from trainscope.report.cases import case_of

    case = case_of(one)
    source = source_of(case.run, folder, file.parent)
    return plan(case.run, case.findings, case.stories, places, source=source, file=str(file))


def source_of(run: Run, place: Path, beside: Path) -> Source:
    """Return how a plan in the folder `beside` names a run."""
    from trainscope.core import facts
    from trainscope.replay.config import Source
    from trainscope.report.build import run_id

    seed = facts.number(run, "smoke.seed")
    wanted = facts.number(run, "smoke.steps_wanted")
    return Source(
        id=run_id(run),
        name=run.name,
        path=Path(os.path.relpath(place, beside)).as_posix(),
        seed=None if seed is None else int(seed),
        steps=None if wanted is None else int(wanted),
    )


def places_of(folder: Path, checkpoint: str | None = None, checkpoints: Path | None = None) -> Places:
    """Return the checkpoints and generator states of a run, and of a folder that the user names."""
    from trainscope.replay.checkpoints import Checkpoint, in_folder, of_run, step_of
    from trainscope.replay.plan import Places

    random = of_run(folder, "rng_states")
    if checkpoint is not None:
        step = step_of(Path(checkpoint.rstrip("/")).name)
        if step is None:
            raise ConfigError(f"--checkpoint {checkpoint}: its name does not say its step, as step_400.pt does")
        return Places([Checkpoint(step, checkpoint)], random, "--checkpoint")
    found = of_run(folder, "checkpoints")
    looked = "the run's folder"
    if checkpoints is not None:
        # Trainers are given the folder that holds checkpoints/, and that is the one that people remember.
        found = sorted([*found, *in_folder(checkpoints), *of_run(checkpoints, "checkpoints")])
        looked = f"the run's folder and {checkpoints}"
    return Places(found, random, looked)


def plans_of(analysis: Analysis, out: Path) -> dict[str, tuple[str, ReplayConfig]]:
    """Plan every run of an analysis that something happened to.

    Returns
    -------
    dict of str to (str, ReplayConfig)
        Run id to the name of the file in `out` and the plan; of several ranks the first has it for all.
    """
    from trainscope.core import facts
    from trainscope.replay.config import FILE

    found: dict[str, tuple[str, ReplayConfig]] = {}
    for entry, one in zip(analysis.document.runs, analysis.alone, strict=True):
        run = one.run
        if not entry.incidents or facts.number(run, "smoke.rank"):
            continue
        name = FILE if not found else FILE.replace(".json", f"-{entry.id}.json")
        folder = Path(run.source)
        plan = _plan_of_judged(one, folder, out / name, places_of(folder))
        if plan is not None:
            found[entry.id] = (name, plan)
    return found

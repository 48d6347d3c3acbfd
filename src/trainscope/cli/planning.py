"""How a run becomes a plan to train again, for the commands that write one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainscope.core.errors import ConfigError

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.core.settings import Settings
    from trainscope.diagnosis.case import Case
    from trainscope.replay.config import ReplayConfig, Source
    from trainscope.replay.plan import Places
    from trainscope.report.pipeline import Analysis


def plan_of(
    runs: Sequence[Run], settings: Settings, file: Path, checkpoint: str | None = None, checkpoints: Path | None = None
) -> ReplayConfig | None:
    """Judge a run, tell its story and plan from it; None where nothing happened.

    Parameters
    ----------
    runs : sequence of Run
        One, or all ranks of a launch: the one that shows most is planned from.
    checkpoint : str, optional
        To begin at, instead of what is found.
    checkpoints : Path, optional
        Folder to look for some in, beside those of the runs.
    file : Path
        Where the plan will be written.

    Raises
    ------
    ConfigError
        If something happened, and the log counts no steps.
    """
    from trainscope.detectors import configure, judge
    from trainscope.diagnosis.compare import IDS
    from trainscope.diagnosis.ranks import folders, teller
    from trainscope.replay.positions import why_unplanned
    from trainscope.report.build import Judged
    from trainscope.report.cases import case_of

    ranks = [case_of(Judged(run, judge(run, configure(settings, others=IDS)))) for run in runs]
    run = teller(ranks).run
    unplanned = why_unplanned(run)
    if unplanned is not None and teller(ranks).stories:
        raise ConfigError(f"--run {run.source}: {unplanned}")
    return _plan_of_ranks(ranks, file, places_of(folders(ranks), checkpoint, checkpoints))


def _plan_of_ranks(ranks: Sequence[Case], file: Path, places: Places) -> ReplayConfig | None:
    from trainscope.diagnosis.ranks import teller, told_by
    from trainscope.replay.plan import plan

    case, told = teller(ranks), told_by(ranks)
    source = source_of(case.run, Path(case.run.source), file.parent)
    found = plan(case.run, case.findings, case.stories, places, source=source, file=str(file))
    if found is None or told is None:
        return found
    return found.model_copy(update={"notes": [f"planned from {told}", *found.notes]})


def source_of(run: Run, place: Path, beside: Path) -> Source:
    """Return how a plan in the folder `beside` names a run."""
    from trainscope.core import facts
    from trainscope.replay.config import Source
    from trainscope.report.build import run_id

    return Source(
        id=run_id(run),
        name=run.name,
        path=Path(os.path.relpath(place, beside)).as_posix(),
        seed=facts.count(run, "smoke.seed"),
        steps=facts.count(run, "smoke.steps_wanted"),
    )


def places_of(folders: Sequence[Path], checkpoint: str | None = None, checkpoints: Path | None = None) -> Places:
    """Return the checkpoints and generator states of the ranks of a run, and of a folder that the user names."""
    from trainscope.replay.checkpoints import Checkpoint, in_folder, of_ranks, of_run, step_of
    from trainscope.replay.plan import Places

    found, random = of_ranks(folders)
    if checkpoint is not None:
        step = step_of(Path(checkpoint.rstrip("/")).name)
        if step is None:
            raise ConfigError(f"--checkpoint {checkpoint}: its name does not say its step, as step_400.pt does")
        return Places([Checkpoint(step, checkpoint)], random, "--checkpoint")
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
        Run id to the name of the file in `out` and the plan; of several ranks the one that shows most has it for all.
    """
    from trainscope.diagnosis.ranks import folders, launches, teller
    from trainscope.replay.config import FILE
    from trainscope.report.cases import case_of

    found: dict[str, tuple[str, ReplayConfig]] = {}
    cases = [case_of(one) for one in analysis.alone]
    entries = {id(case): entry for case, entry in zip(cases, analysis.document.runs, strict=True)}
    for ranks in launches(cases):
        entry = entries[id(teller(ranks))]
        if not entry.incidents:
            continue
        name = FILE if not found else FILE.replace(".json", f"-{entry.id}.json")
        plan = _plan_of_ranks(ranks, out / name, places_of(folders(ranks)))
        if plan is not None:
            found[entry.id] = (name, plan)
    return found

"""The ranks of one launch: several recorded folders, one training.

Each rank reads its own batches and has its own loss, while gradients and weights are shared: a bad batch of one rank
shows as data there, and as a gradient out of nowhere on all others. So a launch is told by the rank that shows most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from trainscope.core.finding import Severity
from trainscope.core.run import Run
from trainscope.diagnosis.case import Case, severity_of

_FOLDER = re.compile(r"(.*)_rank(\d{1,9})", re.ASCII | re.DOTALL)
"""How the recorder calls the folder of each rank."""
_MOST_NAMED = 8


def rank_of(run: Run) -> int | None:
    """Return the rank that a recorded run is of, None for a training of one process or a log."""
    match = _folder_of(run)
    return None if match is None else int(match[2])


def launch_of(run: Run) -> tuple[str, str] | None:
    """Return the folder and the name that the ranks of one launch share, None where there is one process only."""
    match = _folder_of(run)
    return None if match is None else (str(PurePath(run.source).parent), match[1])


def _folder_of(run: Run) -> re.Match[str] | None:
    """Return name and rank in the name of a run's folder, None where it is not that of one rank of several."""
    return _FOLDER.fullmatch(PurePath(run.source).name) if run.format == "recorded" else None


def are_one_launch(runs: Sequence[Run]) -> bool:
    """Tell whether runs are the ranks of one launch, or one run alone."""
    return len(runs) == 1 or (
        bool(runs) and len({launch_of(run) for run in runs}) == 1 and launch_of(runs[0]) is not None
    )


def launches(cases: Iterable[Case]) -> list[list[Case]]:
    """Return runs with the ranks of each launch together, in the order of their first."""
    found: dict[object, list[Case]] = {}
    for case in cases:
        launch = launch_of(case.run)
        found.setdefault(id(case) if launch is None else launch, []).append(case)
    return list(found.values())


def teller(ranks: Sequence[Case]) -> Case:
    """Return the rank that a launch is told by: its incident matters most, is best explained, and has the lowest rank.

    Parameters
    ----------
    ranks : sequence of Case
        At least one.
    """

    def matters(case: Case) -> tuple[bool, bool, int, int, float, int]:
        story = case.main
        worst = max((f.severity for f in case.findings), default=Severity.INFO)
        rank = rank_of(case.run) or 0
        if story is None:
            return True, True, -worst, 0, 0.0, rank
        belief = story.explanations[0].weight if story.explanations else 0.0
        return False, story.loss_step is None, -severity_of(story, case.findings), story.onset, -belief, rank

    return min(ranks, key=matters)


def told_by(ranks: Sequence[Case]) -> str | None:
    """Return which rank a launch is told by, and what the others show, in a sentence; None of one process."""
    if len(ranks) < 2:
        return None
    chosen = teller(ranks)
    which = f"rank {rank_of(chosen.run)} of {len(ranks)} recorded ranks"
    if chosen.main is None:
        return f"{which}; none of them has an incident"
    others = [case for case in ranks if case is not chosen]
    shown = [
        f"rank {rank_of(case.run)}: {'nothing' if case.main is None else f'from step {case.main.onset}'}"
        for case in others[:_MOST_NAMED]
    ]
    more = f", and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return f"{which}, which shows the incident best ({', '.join(shown)}{more})"


def folders(ranks: Sequence[Case]) -> list[Path]:
    """Return the folders of a launch, that of the rank it is told by first."""
    chosen = teller(ranks)
    return [Path(case.run.source) for case in (chosen, *(c for c in ranks if c is not chosen))]

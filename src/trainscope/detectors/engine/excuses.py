"""When a rise of the loss has an explanation that another detector gives, or that is no fault at all."""

from __future__ import annotations

from trainscope.core.run import Run
from trainscope.detectors.engine.events import Excursion
from trainscope.detectors.engine.rates import after_planned_restart
from trainscope.detectors.engine.restarts import near_restart


def excused(run: Run, step: int, event: Excursion) -> bool:
    """Tell whether a rise that starts at `step` is a run that started over, or the bump after a planned warm restart.

    A bump of more than twice the level is never excused by the schedule.
    """
    if near_restart(run, step):
        return True
    modest = event.top <= 2.0 * event.level if event.level > 0 else False
    return modest and after_planned_restart(run, step)

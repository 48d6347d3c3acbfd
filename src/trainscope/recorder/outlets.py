"""Where the recorder speaks while training goes on: an active Weights & Biases run, and callables of the user's own.

Nothing is imported for it: a run is found where the script has begun one. Our values join the row that the
script's next ``wandb.log`` sends (``commit=False``), because logging a row of our own would move the run's step
counter, and W&B drops what a script then logs under a smaller step (documented with ``wandb.Run.log``).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainscope.core.errors import ConfigError
from trainscope.probe import Boundary
from trainscope.recorder import plugins

ALERT_SECONDS = 300.0
"""W&B sends no second alert of the same title within this time."""
SHARE = 0.02
"""Of the time that passes, at most this much goes into rows for W&B; what would take more is left out."""
FREE_SECONDS = 1.0
"""Spent before that limit holds."""
Spike = Mapping[str, Any]
"""As `TrainScope.step` returns it."""


class WandbOutlet:
    """Passive logging to the ``wandb.run`` that is active, if one is.

    Parameters
    ----------
    settings : mapping
        ``enabled`` (default True) and ``alerts`` (default False).
    """

    def __init__(self, settings: Mapping[str, bool]) -> None:
        self._enabled = settings.get("enabled", True)
        self._alerts = settings.get("alerts", False)
        self._known: Any = None
        self._spikes = 0
        self._begun, self._spent = time.perf_counter(), 0.0

    def tell(self, values: Mapping[str, float | None], spike: Spike | None, path: Path | None) -> None:
        """Add one step's values to the row that the script is about to log, and send an alert if wanted.

        Parameters
        ----------
        values : mapping of str to float or None
            Names under ``trainscope/`` and values; None is left out.
        spike : mapping or None
            What became of the step.
        path : Path or None
            The run's folder.
        """
        run = self._run(path)
        if run is None:
            return
        row = {f"trainscope/{name}": value for name, value in values.items() if value is not None}
        if spike is not None:
            self._spikes += 1
            # Later steps join the same row until the script logs: it must say whose score this is.
            row["trainscope/spike_score"], row["trainscope/spike_step"] = spike["spike_score"], spike["step"]
            if spike["loss"] is not None:
                row["trainscope/spike_loss"] = spike["loss"]
        row["trainscope/spikes"] = self._spikes  # a total, which no later row can hide
        self._log(run, row, always=spike is not None)
        if spike is not None and self._alerts:
            run.alert(**_alert(spike, path))

    def _log(self, run: Any, row: dict[str, float], *, always: bool) -> None:
        now = time.perf_counter()
        if always or self._spent <= FREE_SECONDS + SHARE * (now - self._begun):
            run.log(row, commit=False)
            self._spent += time.perf_counter() - now

    def _run(self, path: Path | None) -> Any:
        """Return the active run, told once what our names mean."""
        run = getattr(sys.modules.get("wandb"), "run", None) if self._enabled else None
        if run is not None and run is not self._known:
            self._known = run
            run.define_metric("trainscope/step")
            run.define_metric("trainscope/*", step_metric="trainscope/step")
            if path is not None:
                run.summary["trainscope/run_dir"] = str(path)
        return run


class Outlets:
    """All outlets of one recording.

    Parameters
    ----------
    integrations : mapping
        Field of that name of the settings.
    alerts : sequence of callable or str
        Each is called with every spike; a dotted path stands for what it names.
    boundary : Boundary
        Gets what they raise.

    Raises
    ------
    ConfigError
        If an alert cannot be imported or called; names the field and the entry.
    """

    def __init__(self, integrations: Mapping[str, Any], alerts: Sequence[object], boundary: Boundary) -> None:
        self._wandb = WandbOutlet(integrations.get("wandb", {}))
        self._alerts = [_callable(entry, f"alerts[{number}] = {entry!r:.80}") for number, entry in enumerate(alerts)]
        self._boundary = boundary

    def tell(self, values: Mapping[str, float | None], spike: Spike | None, path: Path | None) -> None:
        """Hand one step to every outlet; what one raises costs only itself."""
        self._boundary.call("wandb", self._wandb.tell, values, spike, path)
        if spike is not None:
            for alert in self._alerts:
                self._boundary.call("alert", alert, dict(spike))


def _alert(spike: Spike, path: Path | None) -> dict[str, Any]:
    broken = not math.isfinite(spike["spike_score"])
    what = "not finite" if broken else f"spike score {spike['spike_score']:.4g}"
    loss = "" if spike["loss"] is None else f", loss {spike['loss']:.6g}"
    where = "" if path is None else f"; recorded in {path}"
    return {
        "title": "trainscope: not finite" if broken else "trainscope: spike",
        "text": f"step {spike['step']}: {what} ({spike['detector']}){loss}{where}",
        "level": "ERROR" if broken else "WARN",
        "wait_duration": ALERT_SECONDS,
    }


def _callable(entry: object, where: str) -> Callable[[dict[str, Any]], object]:
    found = plugins.find(entry, where) if isinstance(entry, str) else entry
    if not callable(found):
        raise ConfigError(f"{where}: expected a callable that takes a spike, or a dotted path to one")
    return found

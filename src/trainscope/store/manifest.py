"""The two JSON files of a run: how it was set up, and what is there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainscope.core.config import TrainScopeConfig
from trainscope.store import folder, layout, schema, spikes
from trainscope.store.spikes import Window


@dataclass(slots=True)
class Manifest:
    """What ``manifest.json`` says. A hint for readers: the Arrow files are right where they differ."""

    last_step: int = -1
    closed: bool = False
    """Whether the run ended in good order."""
    layers: list[tuple[str, str]] = field(default_factory=list)
    """(name, file) in model order."""
    statistics: list[str] | None = None
    """Statistics that some layer has; None where that is not known. Whole only in a run that was closed."""
    windows: list[Window] = field(default_factory=list)
    dropped_windows: int = 0
    """Spike windows that were deleted because there were too many."""
    rewinds: list[dict[str, int]] = field(default_factory=list)
    """``{"step": first step trained again, "last": last step dropped}``."""

    def to_dict(self) -> dict[str, Any]:
        """Return it fit for JSON."""
        return {
            "schema_version": schema.SCHEMA_VERSION,
            "last_step": self.last_step,
            "closed": self.closed,
            "layers": [{"name": name, "file": file} for name, file in self.layers],
            "statistics": self.statistics,
            "spikes": [window.entry() for window in self.windows],
            "dropped_spike_windows": self.dropped_windows,
            "rewinds": self.rewinds,
        }

    def add_window(self, window: Window) -> list[int]:
        """Note a window; return the steps of those that must go for it."""
        self.windows.append(window)
        gone = []
        while len(self.windows) > spikes.MAX_WINDOWS:
            gone.append(self.windows.pop(spikes.MAX_WINDOWS // 2).step)
        self.dropped_windows += len(gone)
        return gone

    def rewind(self, step: int, last: int) -> tuple[list[int], int]:
        """Note a rewind; return the spikes it undoes, and its number."""
        gone = [window.step for window in self.windows if window.step >= step]
        self.windows = [window for window in self.windows if window.step < step]
        self.rewinds.append({"step": step, "last": last})
        return gone, len(self.rewinds)


def meta(name: str, config: TrainScopeConfig, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``meta.json`` says of a new run."""
    return {
        "schema_version": schema.SCHEMA_VERSION,
        "run_name": name,
        "start_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "trainscope_config": config.to_dict(),
        **more,
    }


def load(run: Path) -> Manifest:
    """Return the manifest of a run as far as it can be read; an empty one if it is missing or broken."""
    raw = folder.read_json(run / layout.MANIFEST)
    found = Manifest()
    try:
        found.last_step = int(raw.get("last_step", -1))
        found.closed = bool(raw.get("closed", False))
        found.layers = [(str(x["name"]), str(x["file"])) for x in raw.get("layers", ())]
        said = raw.get("statistics")
        found.statistics = None if said is None else [str(name) for name in said]
        found.windows = [
            Window(int(x["step"]), float(x["score"]), int(x["first"]), int(x["last"]), list(x.get("also", ())))
            for x in raw.get("spikes", ())
        ]
        found.dropped_windows = int(raw.get("dropped_spike_windows", 0))
        found.rewinds = [{"step": int(x["step"]), "last": int(x["last"])} for x in raw.get("rewinds", ())]
    except (TypeError, ValueError, KeyError, AttributeError):
        return found
    # A manifest from elsewhere must not make us touch files outside the run.
    found.layers = [(name, file) for name, file in found.layers if Path(file).name == file]
    return found

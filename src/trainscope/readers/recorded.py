"""A directory written by the recorder, and a root of many.

Recognised by   ``global.arrow`` or a ``meta.json`` with a ``trainscope_config`` in the folder, or in folders
                below it; or ``global.arrow`` itself
Keeps           all scalars under canonical names, plug-in metrics, per-layer statistics, routing shares
Drops           nothing; the recorder's own settings are not the run's configuration and are left out of it
Quirks          a killed run is read to its last flush; steps around old spikes come from their windows; trees
                of trainscope 1.x restart their step count on resume, here the steps go on
Reference       the layout in :mod:`trainscope.store.layout`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import FloatArray, Histograms, IntArray, Note, Run, Scalar, Series

if TYPE_CHECKING:
    import pyarrow as pa

    from trainscope.readers.source import Head, Source
    from trainscope.store.reader import RunReader

NAME = "recorded"
DESCRIPTION = "a run directory of the trainscope recorder, or a root of several"

NAMES: Mapping[str, tuple[str, float]] = {
    "loss": ("train/loss", 1.0),
    "grad_norm_before_clip": ("train/grad_norm", 1.0),
    "grad_norm_after_clip": ("train/grad_norm_after_clip", 1.0),
    "lr": ("learning_rate", 1.0),
    "step_time_ms": ("train/step_time", 1e-3),
    "optimizer_m_norm": ("optimizer/m_norm", 1.0),
    "optimizer_v_norm": ("optimizer/v_norm", 1.0),
    "update_norm": ("optimizer/update_norm", 1.0),
    "weight_norm": ("model/weight_norm", 1.0),
    "cpu_memory_mb": ("memory/cpu_mb", 1.0),
    "cuda_memory_mb": ("memory/cuda_mb", 1.0),
    "grad_scale": ("amp/grad_scale", 1.0),
    "step_skipped": ("amp/step_skipped", 1.0),
    "spike_score": ("recorder/spike_score", 1.0),
    "noise_growth": ("recorder/noise_growth", 1.0),
    "batch_index": ("batch_index", 1.0),
    "micro_batches": ("micro_batches", 1.0),
}
"""Column of ``global.arrow`` to canonical name, and the factor to its unit."""
_NOT_SERIES = frozenset({"step", "is_spike", "wall_time"})
_NOT_CONFIG = frozenset(
    "schema_version run_name start_time trainscope_config detector rank world_size".split()  # noqa: SIM905
)
_MARKS = ("global.arrow", "meta.json")


def sniff(head: Head) -> bool:
    """Tell whether the source is a run directory, a root of some, or the scalars of one."""
    if head.folder is None:
        return head.name == _MARKS[0] and head.raw[:4] == b"\xff\xff\xff\xff"
    from trainscope.store.reader import runs_under

    return bool(runs_under(head.folder))


def read_runs(source: Source) -> list[Run]:
    """Return the runs of a directory, in the order of their names.

    Raises
    ------
    ReadError
        If it holds no recorded run.
    NoDataError
        If none of them has a step.
    """
    from trainscope.store.reader import RunReader, runs_under

    if source.data is not None:
        raise ReadError(source.given, "a recorded run is a folder; name it")
    root = source.path if source.is_folder else source.path.parent
    folders = runs_under(root)
    if not folders:
        raise ReadError(source.given, "no recorded run in this folder")
    runs = []
    for path in folders:
        given = source.given if path == root else f"{source.given.rstrip('/')}/{path.relative_to(root).as_posix()}"
        runs.append(_run(RunReader(path), given, path if path != Path() else path.resolve()))
    if not any(run.series for run in runs):
        raise NoDataError(f"{source.given}: recorded, but not one step was written")
    return [run for run in runs if run.series]


def _run(reader: RunReader, given: str, path: Path) -> Run:
    table = reader.scalars()
    layers, shares = Layers(reader), Shares(reader)
    return Run(
        name=path.name,
        source=given,
        format=NAME,
        series=_series(table, reader),
        config=_config(reader.meta),
        notes=_notes(reader, table),
        layers=layers if layers.layers() else None,
        shares=shares if shares.blocks() else None,
    )


def _series(table: pa.Table, reader: RunReader) -> dict[str, Series]:
    step = table.column("step").to_numpy()
    time = _column(table, "wall_time")
    has_time = bool(len(time)) and bool(np.isfinite(time).all())
    found: dict[str, Series] = {}
    for column in table.schema.names:
        if column in _NOT_SERIES:
            continue
        name, factor = NAMES.get(column, (column, 1.0))
        valid = table.column(column).is_valid().to_numpy()
        if column == "spike_score":
            valid &= table.column("is_spike").fill_null(False).to_numpy().astype(bool)
        if column == "batch_index":
            valid &= _column(table, column) >= 0
        if valid.any():
            value = _column(table, column)[valid] * factor
            found[name] = Series(name, step[valid], value, time[valid] if has_time else None)
    for (plugin, metric), (at, value) in reader.plugin_metrics().items():
        name = f"{plugin}/{metric}"
        found.setdefault(name, Series(name, at, value))
    return found


def _column(table: pa.Table, name: str) -> FloatArray:
    import pyarrow as pa

    # Unsafe: an integer that no float has exactly is rounded, as numpy would, and is no reason to refuse the run.
    values: FloatArray = table.column(name).cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy()
    return values


def _config(meta: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return what the run's author set: not the recorder's own settings, nor a copy of them."""
    own = meta.get("trainscope_config")
    chosen = {k: v for k, v in meta.items() if k not in _NOT_CONFIG and v != own}
    return dict(_flat(chosen))


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Scalar]]:
    found: list[tuple[str, Scalar]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            found += _flat(item, f"{prefix}{key}.")
        elif item is None or isinstance(item, (str, int, float, bool)):
            found.append((f"{prefix}{key}", item))
    return found


def _notes(reader: RunReader, table: pa.Table) -> tuple[Note, ...]:
    step = table.column("step").to_numpy()
    last = int(step[-1]) if len(step) else None
    notes = []
    if reader.is_version_1:
        notes.append(Note("recorded_by_1x", "written by trainscope 1.x; its columns are read as they are"))
        notes += [
            Note("resume", f"the step count restarted at 0; those steps are read as {at} and on", 1, at, last)
            for at in reader.resumed_at()
        ]
    else:
        if not reader.manifest.closed:
            torn = ", the flush after it was cut short" if reader.is_torn else ""
            notes.append(
                Note("not_closed", f"the recording was not closed; read to its last flush{torn}", 1, last, last)
            )
        notes += [
            Note(
                "rewind",
                f"steps {r['step']} to {r['last']} were trained again; the later values were kept",
                r["last"] - r["step"] + 1,
                r["step"],
                r["last"],
            )
            for r in reader.manifest.rewinds
        ]
    notes += _thinned(reader, last)
    if reader.manifest.dropped_windows:
        n = reader.manifest.dropped_windows
        notes.append(Note("dropped_spikes", f"{n} of the spike windows were deleted to bound the disk", n))
    return tuple(notes)


def _thinned(reader: RunReader, last: int | None) -> list[Note]:
    """Return a note where per-layer statistics are so old that the recorder kept only some."""
    settings = reader.meta.get("trainscope_config")
    if reader.is_version_1 or last is None or not isinstance(settings, dict) or not reader.layers():
        return []
    window, factor = settings.get("full_resolution_window"), settings.get("decimation_factor")
    if not isinstance(window, int) or not isinstance(factor, int) or last < window or factor == 1:
        return []
    end = last - window
    message = f"per-layer statistics up to step {end} are thinned out, to one step in {factor} or fewer"
    return [Note("thinned", message, 1, None, end)]


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Per-layer statistics of a recorded run; satisfies :class:`~trainscope.core.run.LayerTable`."""

    reader: RunReader

    def layers(self) -> tuple[str, ...]:
        """Return the recorded parameters and modules in model order."""
        return self.reader.layers()

    def metrics(self) -> tuple[str, ...]:
        """Return the statistics that some layer may have."""
        return self.reader.layer_metrics()

    def series(self, layer: str, metric: str) -> Series:
        """Return one statistic of one layer where it was recorded."""
        step, value = self.reader.layer_points(layer, metric)
        return Series(metric, step, value)

    def histograms(self, layer: str) -> Histograms:
        """Return the weight histograms of one layer, none where never recorded."""
        return Histograms(*self.reader.layer_histograms(layer))


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Routing and addressing shares; satisfies :class:`~trainscope.core.run.ShareTable`."""

    reader: RunReader

    def blocks(self) -> tuple[str, ...]:
        """Return the recorded routers and addressors."""
        return self.reader.blocks()

    def shares(self, block: str) -> tuple[IntArray, FloatArray]:
        """Return steps (n,) and shares (n, experts or slots)."""
        return self.reader.shares(block)

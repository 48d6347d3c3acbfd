"""One run in one small file: what a later run is compared with, fit for a repository or a cache.

An Arrow IPC stream, compressed: one row a series, its steps and values as lists; of the per-parameter statistics
only the first and the last value, which is what comparisons look at. Facts, notes and provenance are JSON in the
first row. The same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainscope.core.files import PART
from trainscope.core.run import Note, Run, Scalar, Series

FORMAT_VERSION = "1"
KEY = b"trainscope.bundle"
LAYER_METRICS = ("grad_l2_norm", "weight_l2_norm", "update_l2_norm")
SUFFIX = ".arrow"


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Per-parameter statistics of a bundle; satisfies :class:`~trainscope.core.run.LayerTable`."""

    points: Mapping[tuple[str, str], Series]

    def layers(self) -> tuple[str, ...]:
        """Return the parameter names in model order."""
        return tuple(dict.fromkeys(layer for layer, _ in self.points))

    def metrics(self) -> tuple[str, ...]:
        """Return the kept statistics."""
        return tuple(dict.fromkeys(metric for _, metric in self.points))

    def series(self, layer: str, metric: str) -> Series:
        """Return the kept points of one statistic (empty where never recorded)."""
        empty = Series(metric, np.array([], dtype=np.int64), np.array([]))
        return self.points.get((layer, metric), empty)


def to_bytes(run: Run) -> bytes:
    """Return the bundle of a run."""
    rows: list[tuple[str | None, str, Any, Any]] = [(None, s.name, s.step, s.value) for s in run.series.values()]
    if run.layers is not None:
        kept = [m for m in LAYER_METRICS if m in run.layers.metrics()]
        for layer in run.layers.layers():
            for metric in kept:
                series = run.layers.series(layer, metric)
                if len(series):
                    ends = [0, len(series) - 1] if len(series) > 1 else [0]
                    rows.append((layer, metric, series.step[ends], series.value[ends]))
    about = {
        "name": run.name,
        "format": run.format,
        "x_axis": run.x_axis,
        "config": {k: _plain(v) for k, v in run.config.items()},
        "notes": [asdict(note) for note in run.notes],
    }
    schema = pa.schema(
        [
            pa.field("layer", pa.string()),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("step", pa.list_(pa.int64()), nullable=False),
            pa.field("value", pa.list_(pa.float64()), nullable=False),
            pa.field("about", pa.string()),
        ],
        # Short, so that the key stands in the first bytes, where a reader looks for it.
        metadata={KEY: FORMAT_VERSION.encode()},
    )
    rows.insert(0, (None, "", [], []))
    table = pa.table(
        [
            [None if layer is None else _utf8(layer) for layer, *_ in rows],
            [_utf8(metric) for _, metric, *_ in rows],
            [step for _, _, step, _ in rows],
            [value for *_, value in rows],
            [json.dumps(about, sort_keys=True), *[None] * (len(rows) - 1)],
        ],
        schema=schema,
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_bytes(data: bytes, source: str) -> Run:
    """Return the run of a bundle.

    Raises
    ------
    ValueError
        If the bytes are no bundle, a damaged one, or one of a later version; says which.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            version = (reader.schema.metadata or {}).get(KEY, b"").decode("ascii", "replace")
            if version not in ("", FORMAT_VERSION):
                raise ValueError(f"a baseline file of version {version}; this trainscope reads {FORMAT_VERSION}")
            table = reader.read_all()
    except (pa.ArrowException, OSError):
        raise ValueError("damaged: not a whole baseline file; save it again") from None
    if not version or not len(table):
        raise ValueError("not a baseline file")
    about = json.loads(table.column("about")[0].as_py())
    series: dict[str, Series] = {}
    points: dict[tuple[str, str], Series] = {}
    columns = (table.column(n).slice(1) for n in ("layer", "metric", "step", "value"))
    for layer, metric, step, value in zip(*columns, strict=True):
        one = Series(metric.as_py(), step.values.to_numpy(), value.values.to_numpy(zero_copy_only=False))
        if layer.as_py() is None:
            series[one.name] = one
        else:
            points[(layer.as_py(), one.name)] = one
    return Run(
        name=str(about["name"]),
        source=source,
        format=str(about["format"]),
        series=series,
        config={k: _parsed(v) for k, v in about["config"].items()},
        notes=tuple(Note(**note) for note in about["notes"]),
        x_axis=str(about["x_axis"]),
        layers=Layers(points) if points else None,
    )


def is_bundle(path: Path) -> bool:
    """Tell whether a file begins as a bundle does, or is empty: one that may be written over."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    return not head or KEY in head


def write(run: Run, path: Path) -> None:
    """Write a bundle, whole or not at all.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    from trainscope.store import stream

    with stream.whole(path, path.with_name(f".{path.name}{PART}")) as part:
        part.write_bytes(to_bytes(run))


def _plain(value: Scalar) -> Any:  # noqa: ANN401 - JSON is whatever it is
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    return value


def _parsed(value: Any) -> Scalar:  # noqa: ANN401 - JSON is whatever it is
    if isinstance(value, dict):
        return float(value["float"])
    assert value is None or isinstance(value, (str, int, float, bool))
    return value


def _utf8(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()

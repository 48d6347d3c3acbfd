"""Every step around a spike, kept whole: what the diagnosis and a person look at first."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute  # loaded by Table.filter: at the first spike it would cost 0.2 s

from trainscope.store import layout, schema, stream
from trainscope.store.chunks import Chunk, by_layer, chunks
from trainscope.store.layers import LayerStore

MAX_WINDOWS = 100
"""Windows kept; beyond it the first half and the newest stay: a diverging run must not fill the disk."""


@dataclass(slots=True)
class Window:
    """One spike and the steps around it."""

    step: int
    score: float
    first: int
    last: int
    also: list[int] = field(default_factory=list)
    """Later spikes inside this window."""

    def entry(self) -> dict[str, Any]:
        """Return it for the manifest."""
        return {
            "step": self.step,
            "score": self.score,
            "first": self.first,
            "last": self.last,
            "also": self.also,
        }


def window_path(run: Path, step: int) -> Path:
    """Return the file of the global window around the spike at `step`."""
    return run / layout.SPIKES / f"spike_step_{step}{layout.SUFFIX}"


def layers_path(run: Path, step: int) -> Path:
    """Return the folder of the per-layer windows around the spike at `step`."""
    return run / layout.SPIKES / f"spike_step_{step}_layers"


def write_window(run: Path, window: Window, rows: pa.RecordBatch, layers: LayerStore) -> None:
    """Write the global and per-layer rows of one window; the layers appear all at once or not at all.

    Raises
    ------
    StoreError
        If a file cannot be written.
    """
    folder = layers_path(run, window.step)
    part = folder.with_name(folder.name + ".part")
    with stream.writing(folder):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    for name, found in _layer_rows(run, window, layers):
        data = stream.messages(schema.layer_schema(name, schema.extra(found.schema)), found.to_batches())
        stream.append_bytes(part / layers.files.file(name), data)
    with stream.writing(folder):
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    stream.write_whole(window_path(run, window.step), rows.schema, [rows])


def _layer_rows(run: Path, window: Window, layers: LayerStore) -> Iterable[tuple[str, pa.Table]]:
    """Yield each layer's rows: from the journal, and from its file where a resume came between."""
    groups = []
    for segment in layout.segments(run):
        inside = [c for c in (_inside(chunk, window) for chunk in chunks(segment)) if c is not None]
        if inside:
            groups.append(inside)
    extra = schema.extra(*(group[0].batch.schema for group in groups))
    known = schema.layer_schema("", extra)
    found: dict[str, list[pa.Table]] = {}
    for group in groups:
        for name, rows in by_layer(group, known):
            found.setdefault(name, []).append(rows)
    before = min((int(group[0].steps[0]) for group in groups), default=window.last + 1) - 1
    for name in layers.files.names() if before >= window.first else ():
        earlier = layers.rows(name, window.first, before)
        if earlier is not None and len(earlier):
            found.setdefault(name, []).insert(0, schema.conform(earlier, known))
    for name, parts in found.items():
        if len(parts) == 1:
            yield name, parts[0]
        else:
            yield name, pa.concat_tables(parts, promote_options="default").combine_chunks()


def _inside(chunk: Chunk, window: Window) -> Chunk | None:
    mask = (chunk.steps >= window.first) & (chunk.steps <= window.last)
    return chunk.only(mask) if np.any(mask) else None


def remove_window(run: Path, step: int) -> None:
    """Delete the window of the spike at `step`."""
    with stream.writing(run / layout.SPIKES):
        window_path(run, step).unlink(missing_ok=True)
        shutil.rmtree(layers_path(run, step), ignore_errors=True)


def set_aside(run: Path, steps: Iterable[int], number: int) -> None:
    """Move windows of steps that will be trained again into ``spikes/rewound-<number>/``.

    The spike did happen, and is often why the run was rewound; but its steps are no longer this run's
    history.
    """
    home = run / layout.SPIKES / f"rewound-{number}"
    with stream.writing(home):
        for step in steps:
            home.mkdir(parents=True, exist_ok=True)
            for path in (window_path(run, step), layers_path(run, step)):
                if path.exists():
                    path.rename(home / path.name)

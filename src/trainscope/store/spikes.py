"""Every step around a spike, kept whole: what the diagnosis and a person look at first."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


def writing(run: Path, window: Window, rows: pa.RecordBatch, layers: LayerStore) -> Iterator[None]:
    """Write the global and per-layer rows of one window, a little at each turn.

    The layers appear all at once or not at all.

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
    for found in _layer_rows(run, window, layers):
        if found is not None:
            name, table = found
            data = stream.messages(schema.layer_schema(name, schema.extra(table.schema)), table.to_batches())
            stream.append_bytes(part / layers.files.file(name), data)
        yield
    with stream.writing(folder):
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    stream.write_whole(window_path(run, window.step), rows.schema, [rows])


def _layer_rows(run: Path, window: Window, layers: LayerStore) -> Iterator[tuple[str, pa.Table] | None]:
    """Yield each layer's rows: from the journal, and from its file where a resume came between.

    None between two pieces of reading.
    """
    groups: dict[tuple[str, ...], list[Chunk]] = {}
    for segment in layout.segments_of(run, window.first, window.last):
        for chunk in chunks(segment):
            mask = (chunk.steps >= window.first) & (chunk.steps <= window.last)
            if mask.any():
                groups.setdefault(chunk.names, []).append(chunk.only(mask))
            yield None
    inside = [chunk for group in groups.values() for chunk in group]
    known = schema.layer_schema("", schema.extra(*(chunk.batch.schema for chunk in inside)))
    before = min((int(chunk.steps[0]) for chunk in inside), default=window.last + 1) - 1
    # Only where the layers changed within the window may one have rows in several groups.
    done: dict[str, list[pa.Table]] = {}
    for number, group in enumerate(groups.values(), 1):
        for name, rows in by_layer(group, known):
            parts = done.pop(name, None)
            if parts is None:
                parts = _earlier(layers, name, window.first, before, known)
            parts.append(rows)
            if number < len(groups):
                done[name] = parts
            else:
                yield name, _whole(parts)
    for name, parts in done.items():
        yield name, _whole(parts)
    known_names = {name for names in groups for name in names}
    for name in layers.files.names() if before >= window.first else ():
        if name not in known_names:
            found = _earlier(layers, name, window.first, before, known)
            yield (name, _whole(found)) if found else None


def _earlier(layers: LayerStore, name: str, first: int, last: int, known: pa.Schema) -> list[pa.Table]:
    rows = layers.rows(name, first, last) if last >= first else None
    return [schema.conform(rows, known)] if rows is not None and len(rows) else []


def _whole(parts: list[pa.Table]) -> pa.Table:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_tables(parts, promote_options="default").sort_by("step").combine_chunks()


def removing(run: Path, step: int) -> Iterator[None]:
    """Delete the window of the spike at `step`, a little at each turn.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    folder = layers_path(run, step)
    with stream.writing(folder):
        window_path(run, step).unlink(missing_ok=True)
        if not folder.is_dir():
            return
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
            yield
        folder.rmdir()


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

"""TensorBoard event files, and folders of them.

Recognised by   a first event that names the file version; a folder with files called ``tfevents``
Keeps           scalars, old style (``simple_value``) and new (tensors), with their wall time
Drops           images, histograms, texts
Quirks          each folder with event files is a run; ``train`` and ``validation`` beside each other (Keras)
                are one run. Several files in one folder are read in order, so a resume shows as a rewind
Reference       https://www.tensorflow.org/tensorboard/dataframe_api
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import Run
from trainscope.readers.assemble import Shape, runs_of_part
from trainscope.readers.source import Head, Source
from trainscope.readers.table import ABSENT, NUMBER, Column, Table, numeric

if TYPE_CHECKING:
    import pandas as pd

NAME = "tensorboard"
DESCRIPTION = "TensorBoard event files and folders (needs the tensorboard extra)"

MARK = "tfevents"
_EXTRA = "needs the tensorboard extra: in the checkout of trainscope, run pip install '.[tensorboard]'"
_SIDES = {
    "train": "train",
    "training": "train",
    "validation": "eval",
    "val": "eval",
    "eval": "eval",
    "test": "test",
}
_DEEPEST = 8


def sniff(head: Head) -> bool:
    """Tell whether the source is an event file or a folder that holds some."""
    if head.folder is not None:
        return bool(event_folders(head.folder))
    if len(head.raw) < 30:
        return MARK in head.name and not head.text.strip()
    (length,) = struct.unpack("<Q", head.raw[:8])
    return length < 1 << 20 and b"brain.Event:" in head.raw[12 : 12 + length]


def event_folders(folder: Path) -> list[Path]:
    """Return the folders at or below `folder` that hold event files, sorted."""
    found: set[Path] = set()
    try:
        for file in folder.rglob(f"*{MARK}*"):
            if file.is_file() and len(file.relative_to(folder).parts) <= _DEEPEST:
                found.add(file.parent)
    except OSError:
        return []
    return sorted(found)


def is_run_folder(folder: Path) -> bool:
    """Tell whether a folder is one run: it holds event files, or ``train`` and ``validation`` folders of them."""
    folders = event_folders(folder)
    return any(f == folder or (f.parent == folder and f.name.lower() in _SIDES) for f in folders)


def read_runs(source: Source) -> list[Run]:
    """Return the runs of an event file or a folder, in the order of their paths."""
    if source.data is not None:
        raise ReadError(source.given, "an event file cannot be read from standard input; name the file")
    if importlib.util.find_spec("tbparse") is None:
        raise ReadError(source.given, _EXTRA)
    if not source.is_folder:
        scalars = _scalars([source.path], source)
        runs = runs_of_part(_table(scalars), source, Shape(NAME, step="step"), source.name)
    else:
        runs = _runs_of_folder(source)
    if not runs:
        raise NoDataError(f"{source.given}: no scalars in its event files")
    return runs


def _runs_of_folder(source: Source) -> list[Run]:
    groups: dict[str, list[tuple[str, Path]]] = {}
    for folder in event_folders(source.path):
        relative = folder.relative_to(source.path)
        side = _SIDES.get(folder.name.lower()) if relative.parts else None
        run = relative.parent if side else relative
        groups.setdefault(run.as_posix(), []).append((side or "", folder))
    runs: list[Run] = []
    for key, members in groups.items():
        name = source.name if key == "." else key
        tables = []
        for side, folder in members:
            files = sorted(f for f in folder.iterdir() if MARK in f.name and f.is_file())
            table = _table(_scalars(files, source))
            table.columns = {_with_side(side, n): c for n, c in table.columns.items()}
            tables.append(table)
        runs += runs_of_part(_merged(tables), source, Shape(NAME, step="step"), name)
    return runs


def _with_side(side: str, name: str) -> str:
    return name if not side or name in ("step", "wall_time") else f"{side}/{name}"


def _merged(tables: Sequence[Table]) -> Table:
    from trainscope.readers.table import concatenate

    return tables[0] if len(tables) == 1 else concatenate(tables)


def _scalars(files: Sequence[Path], source: Source) -> pd.DataFrame:
    """Return tag, step, value and wall_time of every scalar event, in file order."""
    import pandas as pd
    from tbparse import SummaryReader

    frames = []
    for file in files:
        try:
            found = SummaryReader(str(file), extra_columns={"wall_time"})
            both = [frame for frame in (found.scalars, _scalar_tensors(found.tensors)) if len(frame)]
        except (OSError, ValueError, KeyError, IndexError, RuntimeError) as error:
            said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise ReadError(source.given, f"the event file {file.name} cannot be read ({said})") from None
        if both:
            # tbparse sorts by tag; the order of writing is that of the clock.
            frames.append(pd.concat(both).sort_values("wall_time", kind="stable"))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _scalar_tensors(tensors: pd.DataFrame) -> pd.DataFrame:
    """Return the tensor events of one number each: TensorFlow 2 writes scalars so."""
    if not len(tensors):
        return tensors
    single = tensors["value"].map(lambda value: np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub")
    return tensors[single]


def _table(scalars: pd.DataFrame) -> Table:
    """Put the events of one step on one row; a step that a tag has twice gets a second row."""
    if not len(scalars):
        return Table(0, {})
    time_of_tag = scalars.groupby(["tag", "step"], sort=False).cumcount()
    rows = scalars.assign(turn=time_of_tag).groupby(["turn", "step"], sort=False)
    row = rows.ngroup().to_numpy()
    count = int(row.max()) + 1
    first = np.zeros(count, np.int64)
    first[row[::-1]] = np.arange(len(row))[::-1]
    columns = {
        "step": numeric(scalars["step"].to_numpy(np.float64)[first]),
        "wall_time": numeric(scalars["wall_time"].to_numpy(np.float64)[first]),
    }
    for tag, events in scalars.assign(row=row).groupby("tag", sort=False):
        value, state = np.full(count, np.nan), np.full(count, ABSENT, np.uint8)
        at = events["row"].to_numpy()
        value[at], state[at] = events["value"].to_numpy(np.float64), NUMBER
        columns[str(tag) if str(tag) not in columns else f"{tag}_2"] = Column(value, state)
    return Table(count, columns)

"""Writes the records of all ranks as run directories that :mod:`trainscope.readers.recorded` reads."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trainscope.core.config import TrainScopeConfig
from trainscope.core.errors import StoreError
from trainscope.core.run import FloatArray
from trainscope.smoke.command import Wish
from trainscope.smoke.constants import facts_of, flat
from trainscope.smoke.coverage import shared
from trainscope.smoke.record import FACTS_FILE, RUN_NAME
from trainscope.smoke.records import Record, gathered
from trainscope.smoke.rows import Rows
from trainscope.store import folder
from trainscope.store.writer import RunWriter

_PART = ".smoke.part"


def write(records: Sequence[Record], wish: Wish, out: Path) -> list[Path]:
    """Write one run directory a rank under `out`, in place of those of an earlier smoke run.

    Parameters
    ----------
    records : sequence of Record
        One for each rank, each with at least one step.
    out : Path
        Made if it is missing. Nothing in it changes unless everything could be written.

    Raises
    ------
    StoreError
        If the folder cannot be written.
    """
    part = out / _PART
    remove(part)
    written = [_write(record, records, wish, part) for record in records]
    for old in previous(out):
        remove(old)
    moved = []
    for path in written:
        try:
            moved.append(path.rename(out / path.name))
        except OSError as error:
            raise StoreError(f"{out / path.name}: cannot be written ({error.strerror})") from None
    remove(part)
    return moved


def check_free(out: Path) -> None:
    """Make sure that no file of somebody else's stands where the recorded runs go: before the training, not after.

    Raises
    ------
    StoreError
        If there is one.
    """
    ours = set(previous(out))
    for path in (out / RUN_NAME, *sorted(out.glob(f"{RUN_NAME}_rank[0-9]*"))):
        is_empty = path.is_dir() and not any(path.iterdir())
        if path not in ours and not is_empty and (path.exists() or path.is_symlink()):
            raise StoreError(f"{path}: not a recorded run, and in the way of one; move it, or name another --out")


def previous(out: Path) -> list[Path]:
    """Return the smoke runs in a folder: only what an earlier call wrote."""
    return sorted(path.parent for path in out.glob(f"{RUN_NAME}*/{FACTS_FILE}"))


def remove(path: Path) -> None:
    """Remove a folder, if it is there.

    Raises
    ------
    StoreError
        If it cannot be removed.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be removed ({error.strerror})") from None


def _write(record: Record, records: Sequence[Record], wish: Wish, part: Path) -> Path:
    rows = Rows(record)
    steps = len(record.steps)
    config = TrainScopeConfig(run_dir=str(part), run_name=RUN_NAME, full_resolution_window=max(500, steps + 1))
    facts = facts_of(record, wish, ranks=len(records))
    facts["smoke"]["ranks_shared"] = shared(records) if record is records[0] else None
    writer = RunWriter.create(config, meta=flat(facts), rank=record.rank if len(records) > 1 else None)
    try:
        for step in range(steps):
            scalars = rows.scalars(step)
            if record is records[0] and len(records) > 1 and not record.begin["sharded"]:
                for name, key in (("gradient", "applied"), ("weight", "weights")):
                    scalars[f"smoke/rank_{name}_spread"] = spread(records, step, key)
                scalars["smoke/rank_same_batch"] = same_batches(records, step)
            writer.append(step, scalars, rows.block(step), rows.shares(step))
    finally:
        writer.close()
    folder.write_json(writer.path / FACTS_FILE, facts, indent=1)
    return writer.path


def spread(records: Sequence[Record], step: int, key: str) -> float | None:
    """Return the largest relative difference between ranks of any parameter's norm; None where not all have it."""
    layers = {name: place for place, name in enumerate(records[0].layers())}
    if any(step >= len(r.steps) or set(r.layers()) != set(layers) for r in records):
        return None
    values: FloatArray = np.stack([gathered(record, step, key, layers) for record in records])
    high, low = values.max(axis=0), values.min(axis=0)
    relative = np.divide(high - low, np.abs(high), out=np.zeros_like(high), where=high > 0)
    return float(np.nanmax(relative)) if np.isfinite(relative).any() else None


def same_batches(records: Sequence[Record], step: int) -> bool | None:
    """Tell whether all ranks trained on the same batches at a step; None where one of them shows none."""
    if any(step >= len(record.steps) for record in records):
        return None
    seen = [
        [h for part in record.steps[step]["parts"] for h in part["batches"] or part["inputs"]] for record in records
    ]
    return all(one == seen[0] for one in seen) if all(seen) else None

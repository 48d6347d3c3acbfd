"""Write one run's rows the way different trainers and trackers lay them out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trainings.loop import Row

STEPS_PER_EPOCH = 100
"""The runs draw their batches at random; this many are called an epoch where a layout wants one."""


def jsonl(path: Path, rows: Sequence[Row]) -> None:
    """One JSON object a line, NaN as the bare word that Python's ``json`` writes."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def plain_csv(path: Path, rows: Sequence[Row]) -> None:
    """One row a step, evaluation in the same row, blank where there was none."""
    _table(path, _one_row_a_step(rows))


def wandb_csv(path: Path, rows: Sequence[Row]) -> None:
    """Columns and names as a W&B history has them, without its clock."""
    _table(path, [{_grouped(k): v for k, v in row.items()} for row in _one_row_a_step(rows)])


def lightning_csv(path: Path, rows: Sequence[Row]) -> None:
    """``metrics.csv`` as Lightning's CSVLogger has it: a row for each call, steps counted from 0."""
    names = {"loss": "train_loss", "grad_norm": "grad_norm", "eval_loss": "val_loss"}
    table: list[Row] = []
    for row in rows:
        step = int(row["step"]) - 1
        if "learning_rate" in row:
            table.append({"step": step, "lr-AdamW": row["learning_rate"]})
        measured = {names[k]: v for k, v in row.items() if k in names}
        table.append({"epoch": step // STEPS_PER_EPOCH, "step": step, **measured})
    _table(path, table, sorted({key for row in table for key in row}))


def trainer_state(path: Path, rows: Sequence[Row]) -> None:
    """``trainer_state.json`` as the Hugging Face Trainer has it."""
    history = [{"epoch": row["step"] / STEPS_PER_EPOCH, **row} for row in rows]
    last = int(rows[-1]["step"])
    state = {
        "epoch": last / STEPS_PER_EPOCH,
        "global_step": last,
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": 1,
        "max_steps": last,
        "num_train_epochs": -(-last // STEPS_PER_EPOCH),
    }
    path.write_text(json.dumps(state, indent=2, sort_keys=True) + "\n", encoding="utf-8")


FORMATS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    ".jsonl": jsonl,
    ".csv": plain_csv,
    ".wandb.csv": wandb_csv,
    ".metrics.csv": lightning_csv,
    ".trainer_state.json": trainer_state,
}
"""File name ending to the function that writes it."""


@contextmanager
def write_tensorboard(folder: Path) -> Iterator[Callable[[Row], None]]:
    """Give a function that writes a row to an event file in `folder`, named without clock or host."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:

        def live(row: Row) -> None:
            for name, value in row.items():
                if name != "step":
                    writer.add_scalar(_grouped(name), value, int(row["step"]))

        yield live
    (written,) = folder.iterdir()
    written.rename(folder / "events.out.tfevents.0")


def _grouped(name: str) -> str:
    """Return ``eval/loss`` for ``eval_loss``, ``train/...`` for all else that is measured."""
    if name == "step":
        return "_step"
    return "eval/loss" if name == "eval_loss" else f"train/{name}"


def _one_row_a_step(rows: Sequence[Row]) -> list[Row]:
    merged: list[Row] = []
    for row in rows:
        if merged and merged[-1]["step"] == row["step"]:
            merged[-1] |= row
        else:
            merged.append(dict(row))
    return merged


def _table(path: Path, rows: Sequence[Row], columns: Sequence[str] | None = None) -> None:
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

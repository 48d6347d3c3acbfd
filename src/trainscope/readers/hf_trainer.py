"""Hugging Face ``trainer_state.json``, or the folder of a run that holds one.

Recognised by   a JSON object with a ``log_history`` list, whatever its name; a folder with
                ``trainer_state.json`` or ``checkpoint-*/trainer_state.json``
Keeps           numeric keys under canonical names (``loss`` -> ``train/loss``); the training arguments are
                read by :mod:`trainscope.readers.beside`
Drops           the closing summary row (its ``train_loss`` is an average over the run): it goes to the config
Quirks          of a folder's states the one with the most steps is read; a cut file is read up to the cut
Reference       https://huggingface.co/docs/transformers/main_classes/callback#transformers.TrainerState
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trainscope.core.errors import NoDataError, ReadError
from trainscope.core.run import Note, Run
from trainscope.readers.assemble import Shape, runs_of
from trainscope.readers.json_document import cut_note, objects_in_array
from trainscope.readers.records import RecordTable
from trainscope.readers.source import Head, Source

NAME = "hf_trainer"
DESCRIPTION = "Hugging Face Trainer: trainer_state.json, or the run's folder"

STATE = "trainer_state.json"
_OPENS_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_GLOBAL_STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,18})')
_CONFIG_KEYS = (
    "num_train_epochs",
    "max_steps",
    "train_batch_size",
    "logging_steps",
    "eval_steps",
    "save_steps",
    "num_input_tokens_seen",
    "best_metric",
    "total_flos",
)


def sniff(head: Head) -> bool:
    """Tell whether the source is a trainer state or a folder of one."""
    if head.folder is not None:
        return state_in(head.folder) is not None
    return head.text.lstrip()[:1] == "{" and bool(_OPENS_HISTORY.search(head.text))


def state_in(folder: Path) -> Path | None:
    """Return the most advanced ``trainer_state.json`` of a run's folder, None if it has none."""
    try:
        states = [folder / STATE, *folder.glob(f"checkpoint-*/{STATE}")]
        found = [state for state in states if state.is_file()]
    except OSError:
        return None
    # Ties go to the folder's own: it alone has the closing summary.
    return max(found, key=lambda state: (_steps(state), state.parent == folder), default=None)


def _steps(state: Path) -> int:
    number = state.parent.name.removeprefix("checkpoint-")
    if number.isdecimal():
        return int(number)
    try:
        match = _GLOBAL_STEP.search(state.read_bytes())
    except OSError:
        return -1
    return int(match[1]) if match else -1


def read_runs(source: Source) -> list[Run]:
    """Return the run of a trainer state."""
    inner = source
    if source.is_folder:
        state = state_in(source.path)
        if state is None:
            raise ReadError(source.given, f"no {STATE} in this folder or its checkpoint-* folders")
        inner = Source(str(state))
    decoded = inner.decoded()
    if decoded.binary:
        raise ReadError(inner.given, "is a binary file, not JSON")
    text = decoded.data.decode("utf-8", "replace")
    if not text.strip():
        raise NoDataError(f"{inner.given}: the file is empty")
    state_, history, notes = _parse(text, inner)
    if not history:
        raise NoDataError(f"{inner.given}: log_history is empty: nothing was logged yet")
    records = RecordTable(source.given)
    records.add(history)
    table = records.table()
    table.notes += [*decoded.notes, *notes]
    table.config.update({key: state_[key] for key in _CONFIG_KEYS if isinstance(state_.get(key), (int, float))})
    return runs_of(table, source, Shape(NAME, splits=False))


def _parse(text: str, source: Source) -> tuple[dict[str, Any], list[dict[str, Any]], list[Note]]:
    """Return the state, its log entries, and notes."""
    try:
        state = json.loads(text)
    except RecursionError:
        raise ReadError(source.given, "is nested too deeply to be a trainer state") from None
    except ValueError as error:
        opening = _OPENS_HISTORY.search(text)
        found = objects_in_array(text, opening.end())[0] if opening else []
        if not found:
            raise ReadError(source.given, f"is not valid JSON ({error})") from None
        return {}, found, [cut_note(len(found))]
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise ReadError(source.given, "has no log_history list, so it is no trainer state")
    history = [entry for entry in state["log_history"] if isinstance(entry, dict)]
    other = len(state["log_history"]) - len(history)
    notes = [Note("malformed_line", f"{other} entries of log_history are no objects", other)] if other else []
    return state, history, notes

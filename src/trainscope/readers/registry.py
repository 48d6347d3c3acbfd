"""The registry of readers, and the functions that pick one."""

from __future__ import annotations

import json
from pathlib import Path

from trainscope.core.errors import ConfigError, NoDataError, NoReaderError, did_you_mean
from trainscope.core.run import Run
from trainscope.readers import (
    bundle,
    csv_log,
    hf_trainer,
    json_document,
    jsonl,
    lightning,
    recorded,
    tensorboard,
    text_log,
    wandb,
    wandb_chart,
)
from trainscope.readers.base import Reader
from trainscope.readers.beside import configured
from trainscope.readers.source import Head, Source, open_source

READERS: tuple[Reader, ...] = (
    bundle,
    recorded,
    hf_trainer,
    jsonl,
    json_document,
    wandb,
    wandb_chart,
    lightning,
    csv_log,
    tensorboard,
    text_log,
)

_ARCHIVES = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
}


def read_runs(path: str | Path, *, format: str | None = None) -> list[Run]:
    """Return the runs in a log.

    Parameters
    ----------
    path : str or Path
        A file, the folder of a run, or ``-`` for standard input.
    format : str, optional
        `NAME` of the reader to use; found by the content if not given.

    Raises
    ------
    ReadError
        If the log cannot be opened or understood; `NoReaderError` if no reader recognises it.
    NoDataError
        If there is nothing in it to judge.
    ConfigError
        If no reader is called `format`.
    """
    import numpy as np

    source = open_source(path)
    with np.errstate(all="ignore"):  # infinities are data here: a difference of two is no warning to a user
        return configured(reader_for(source, format).read_runs(source), source)


def reader_for(source: Source, name: str | None = None) -> Reader:
    """Return the reader called `name`, or the one that recognises the source.

    Raises
    ------
    ConfigError
        If no reader is called `name`.
    ReadError
        If the source cannot be opened, or no reader recognises it.
    NoDataError
        If it is empty.
    """
    if name is not None:
        for reader in READERS:
            if name == reader.NAME:
                return reader
        raise ConfigError(f"no log format is called {name!r}{did_you_mean(name, [r.NAME for r in READERS])}")
    head = source.head
    for reader in READERS:
        if reader.sniff(head):
            return reader
    if head.folder is None and not head.text.strip() and not head.raw.strip():
        raise NoDataError(f"{source.given}: the file is empty")
    if not head.whole and text_log.holds_metrics(source):
        return text_log
    raise NoReaderError(source.given, _unknown(head))


def _is_too_deep(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return False


def _unknown(head: Head) -> str:
    tried = ", ".join(reader.NAME for reader in READERS)
    if head.folder is not None:
        return "a folder without trainer_state.json, checkpoints or event files; name the log in it"
    archive = next((name for start, name in _ARCHIVES.items() if head.raw.startswith(start)), None)
    if archive is not None or head.raw[257:262] == b"ustar":
        return f"a {archive or 'tar'} archive; unpack it first"
    if head.text.lstrip()[:1] in ("{", "[") and _is_too_deep(head.text):
        return "JSON that is nested too deeply to be a log"
    if not head.text:
        return f"a binary file that is no event file (tried {tried})"
    if not head.whole and not any(end in head.text for end in "\r\n"):
        return f"its first line is longer than {len(head.raw) >> 20} MiB, and not JSON"
    by_hand = "trainscope analyze --format NAME picks one"
    return f"no reader recognises the content, {text_log.NOTHING} (tried {tried}); {by_hand}"

"""Which files of a folder are logs."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainscope.core.errors import NoDataError, NoReaderError, ReadError, TrainscopeError
from trainscope.core.files import PRINTED
from trainscope.readers import beside, bundle, hf_trainer, tensorboard
from trainscope.readers.registry import reader_for
from trainscope.readers.source import STDIN, Source, status_of, why

_PACKED = (".gz", ".bz2", ".xz")
_LOGS = (".jsonl", ".ndjson", ".csv", ".tsv")
"""Always logs: one that turns out to be empty or broken must not pass unseen."""
_PERHAPS = (".json", ".log", ".txt", ".out")
"""Logs where a reader recognises the content."""
_NEVER = frozenset(
    {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "generation_config.json",
        "vocab.json",
        "added_tokens.json",
        "preprocessor_config.json",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "requirements.txt",
        "license.txt",
        "readme.txt",
        "merges.txt",
        "model.safetensors.index.json",
        "training_args.json",
        "args.json",
        "all_results.json",
        "train_results.json",
        "eval_results.json",
        "adapter_config.json",
        "manifest.json",
        "labels.json",
        "vocab.txt",
        "wandb-metadata.json",
        "wandb-summary.json",
        "hparams.json",
        "meta.json",
        "expected.json",
    }
)
_SKIPPED_FOLDERS = frozenset(["__pycache__", "node_modules", "site-packages"])


def find_logs(paths: Sequence[str], *, failures: list[ReadError | NoDataError] | None = None) -> list[str]:
    """Return the logs that `paths` name, each once, in a fixed order.

    Parameters
    ----------
    paths : sequence of str
        Files, folders, glob patterns and ``-``. A file that is named is taken whatever it is; of a folder
        the files that can be logs. A folder that is one run (Hugging Face checkpoints, TensorBoard events)
        stands for itself. A file that is named twice, whatever the spelling, is one log.
    failures : list, optional
        Where given, what would be raised is put here, so that one wrong path does not stop the others.

    Raises
    ------
    NoDataError
        If a pattern or a folder matches nothing.
    ReadError
        If a folder cannot be opened.
    """
    found: dict[object, str] = {}
    problems: list[ReadError | NoDataError] = []
    for given in paths:
        before = len(problems)
        matched = list(_matches(given, problems))
        if not matched and len(problems) == before:
            problems.append(NoDataError(f"{given}: {_nothing(given)}"))
        for log in matched:
            found.setdefault(_identity(log), log)
    if not found and not problems:
        problems.append(NoDataError("no log was named: give files, folders or patterns"))
    if failures is not None:
        failures.extend(problems)
    elif problems:
        raise problems[0]
    return list(found.values())


def _identity(log: str) -> object:
    """Return what two spellings of one file have in common."""
    if log == STDIN:
        try:
            status = os.fstat(sys.stdin.fileno())
        except (OSError, ValueError, AttributeError):
            return log
    else:
        found = status_of(log)
        if found is None:
            return log
        status = found
    # Not by number for files: two hard links are two names that somebody gave on purpose.
    if log != STDIN and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return os.path.realpath(log)
    return status.st_dev, status.st_ino


def _nothing(given: str) -> str:
    return "no log in this folder" if _is_folder(given) else "no file matches this pattern"


def _is_folder(path: str | Path) -> bool:
    status = status_of(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _matches(given: str, problems: list[ReadError | NoDataError]) -> Iterator[str]:
    if not given.strip():
        problems.append(NoDataError(f"{given!r} names nothing; give a file, a folder or a pattern"))
    elif given == STDIN:
        yield given
    elif _is_folder(given):
        yield from _in_folder(Path(given), problems)
    elif status_of(given) is None and glob.has_magic(given):
        for match in sorted(glob.glob(given, recursive=True)):  # noqa: PTH207 (pathlib has no ~user or absolute patterns)
            if _is_folder(match):
                yield from _in_folder(Path(match), problems)
            else:
                yield match
    else:
        yield given  # opening it says what is wrong with it


def _in_folder(folder: Path, problems: list[ReadError | NoDataError], *, within_run: bool = False) -> Iterator[str]:
    """Walk a folder; inside a TensorBoard run its event files are not another one."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        problems.append(ReadError(folder, why(error)))
        return
    if hf_trainer.state_in(folder) is not None or (folder / "global.arrow").is_file():  # a run stands for itself
        yield str(folder)
        return
    if not within_run and tensorboard.is_run_folder(folder):
        yield str(folder)
        within_run = True
    recorded = any((entry / "global.arrow").is_file() for entry in entries)
    for entry in entries:
        status = status_of(entry)
        if entry.name.startswith(".") or status is None or (recorded and entry.name == PRINTED):
            continue
        if stat.S_ISDIR(status.st_mode) and not entry.is_symlink() and entry.name not in _SKIPPED_FOLDERS:
            yield from _in_folder(entry, problems, within_run=within_run)
        elif stat.S_ISREG(status.st_mode) and _is_log(entry):
            yield str(entry)


def _is_log(file: Path) -> bool:
    name = file.name.lower()
    if name.endswith(".arrow"):
        return bundle.sniff(Source(str(file)).head)
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    if name.endswith(_LOGS):
        return True
    if not name.endswith(_PERHAPS) or name in _NEVER or name.endswith(beside.OF_LOG):
        return False
    try:
        reader_for(Source(str(file)))
    except NoReaderError:
        return False
    except NoDataError:
        return name.endswith(".json")  # an empty one: reading it says what is wrong
    except TrainscopeError:
        return True  # one that cannot be opened must not pass unseen
    return True

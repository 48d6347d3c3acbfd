"""Which files of a folder are logs."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainscope.core.errors import NoDataError, NoReaderError, TrainscopeError
from trainscope.readers import bundle, hf_trainer, tensorboard
from trainscope.readers.registry import reader_for
from trainscope.readers.source import STDIN, Source

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


def find_logs(paths: Sequence[str]) -> list[str]:
    """Return the logs that `paths` name, each once, in a fixed order.

    Parameters
    ----------
    paths : sequence of str
        Files, folders, glob patterns and ``-``. A file that is named is taken whatever it is; of a folder
        the files that can be logs. A folder that is one run (Hugging Face checkpoints, TensorBoard events)
        stands for itself.

    Raises
    ------
    NoDataError
        If a pattern or a folder matches nothing.
    """
    found: dict[str, None] = {}
    for given in paths:
        matched = list(_matches(given))
        if not matched:
            raise NoDataError(f"{given}: {_nothing(given)}")
        found.update(dict.fromkeys(matched))
    if not found:
        raise NoDataError("no log was named: give files, folders or patterns")
    return list(found)


def _nothing(given: str) -> str:
    return "no log in this folder" if Path(given).is_dir() else "no file matches this pattern"


def _matches(given: str) -> Iterator[str]:
    path = Path(given)
    if given == STDIN or path.is_file():
        yield given
    elif path.is_dir():
        yield from _in_folder(path)
    elif glob.has_magic(given):
        for match in sorted(glob.glob(given, recursive=True)):  # noqa: PTH207 (pathlib has no ~user or absolute patterns)
            if Path(match).is_dir():
                yield from _in_folder(Path(match))
            else:
                yield match
    else:
        yield given  # opening it says what is wrong with it


def _in_folder(folder: Path, *, within_run: bool = False) -> Iterator[str]:
    """Walk a folder; inside a TensorBoard run its event files are not another one."""
    if hf_trainer.state_in(folder) is not None:
        yield str(folder)
        return
    if (folder / "global.arrow").is_file():  # a recorded run stands for itself
        yield str(folder)
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    if not within_run and tensorboard.is_run_folder(folder):
        yield str(folder)
        within_run = True
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink() and entry.name not in _SKIPPED_FOLDERS:
            yield from _in_folder(entry, within_run=within_run)
        elif entry.is_file() and _is_log(entry):
            yield str(entry)


def _is_log(file: Path) -> bool:
    name = file.name.lower()
    if name.endswith(".arrow"):
        return bundle.sniff(Source(str(file)).head)
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    if name.endswith(_LOGS):
        return True
    if not name.endswith(_PERHAPS) or name in _NEVER:
        return False
    try:
        reader_for(Source(str(file)))
    except NoReaderError:
        return False
    except TrainscopeError:
        return name.endswith(".json")  # an empty or unreadable one: reading it says what is wrong
    return True

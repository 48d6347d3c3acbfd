"""The configuration that stands beside a log: training arguments, hyperparameters, a tracker's config.

Recognised by   ``training_args.json``, ``args.json``, ``training_args.bin`` (Hugging Face), ``hparams.yaml``
                (Lightning), ``config.yaml`` and ``wandb-metadata.json`` (Weights & Biases), ``hparams.json``,
                ``config.yml``, in the folder of a run; ``<log>.yaml``, ``<log>.config.json`` and the like beside a
                log of that name
Keeps           numbers, words and switches, nested names joined with dots; short lists as text
Drops           Python objects in YAML, what is longer or deeper than a configuration is, users and hosts
Quirks          ``training_args.bin``, where there is nothing else, is read without being unpickled. ``1e-4``, which
                YAML 1.1 takes for a word, is a number. What looks like a password or a key is masked, wherever it
                comes from
Reference       https://docs.wandb.ai/guides/track/config, https://yaml.org/spec/1.1/
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from trainscope.core.run import Note, Run, Scalar
from trainscope.readers import hf_trainer
from trainscope.readers.config_values import flat, is_secret, masked, of_tracker, options, parse_yaml
from trainscope.readers.notes import counted
from trainscope.readers.pickled_settings import settings_in
from trainscope.readers.source import Source

METADATA = "wandb-metadata.json"
IN_FOLDER = (
    "training_args.json",
    "args.json",
    "hparams.yaml",
    "hparams.yml",
    "hparams.json",
    "config.yaml",
    "config.yml",
    METADATA,
)
"""Files of a folder that holds one run, in the order in which they win."""
OF_LOG = (".config.json", ".config.yaml", ".hparams.yaml", ".hparams.json", ".yaml", ".yml")
"""What follows the name of a log in the name of its configuration."""
PICKLE = "training_args.bin"
MAX_BYTES = 256 << 10
_CHECKPOINT = "checkpoint-"
_LOG_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".log", ".txt", ".out")
_NO_LOG = frozenset({"requirements.txt", "output.log", "readme.txt", "license.txt", "merges.txt", "vocab.txt"})
"""Files that end like a log and, beside one, are none; W&B keeps the console in ``output.log``."""


def configured(runs: Sequence[Run], source: Source) -> list[Run]:
    """Return runs with the configuration that stands beside their log, and every secret masked.

    What the log itself says of a setting wins. A file that cannot be read is no error: a note says why.
    """
    found = []
    for run in runs:
        config, notes = _beside(run, source, alone=len(runs) == 1)
        merged = {**config, **run.config}
        if config or notes or any(is_secret(k, v) for k, v in run.config.items()):
            run = replace(run, config=MappingProxyType(masked(merged)), notes=(*run.notes, *notes))
        found.append(run)
    return found


def _beside(run: Run, source: Source, *, alone: bool) -> tuple[dict[str, Scalar], list[Note]]:
    """Return the settings beside one run, and notes."""
    config: dict[str, Scalar] = {}
    notes: list[Note] = []
    for path in _files(run, source, alone=alone):
        found = _read(path, notes)
        if found is not None:
            # The first file that says something of a setting wins.
            config = {**found, **config}
    home = _home(run, source)
    pickled = None if config or home is None else _pickled(home)
    if pickled is not None:
        config = _of_pickle(pickled, notes)
    return config, notes


def _pickled(home: Path) -> Path | None:
    """Return the pickled arguments of a run: in its folder, else in that of its most advanced checkpoint."""
    state = hf_trainer.state_in(home)
    homes = (home, *((home.parent,) if home.name.startswith(_CHECKPOINT) else ()), *((state.parent,) if state else ()))
    return next((path for place in homes if _is_file(path := place / PICKLE)), None)


def _of_pickle(path: Path, notes: list[Note]) -> dict[str, Scalar]:
    """Return the settings in a pickle that is not run; notes say why there are none."""
    try:
        return flat(settings_in(path))[0]
    except ValueError as error:
        notes.append(_note(path, f"was not read: {error}; save the arguments as training_args.json"))
    except OSError as error:
        notes.append(_note(path, f"cannot be read ({(error.strerror or 'unreadable').lower()})"))
    return {}


def _home(run: Run, source: Source) -> Path | None:
    """Return the folder that holds a run and nothing else, None where there is none."""
    if source.data is not None or run.format == "bundle":
        return None
    if not source.is_folder:
        return source.path.parent
    own = source.path / run.name
    return own if _is_folder(own) else source.path


def _files(run: Run, source: Source, *, alone: bool) -> Iterator[Path]:
    home = _home(run, source)
    if home is None:
        return
    if not source.is_folder:
        name = source.path.name
        for stem in dict.fromkeys((name, name.split(".")[0])):
            yield from (path for suffix in OF_LOG if _is_file(path := home / f"{stem}{suffix}"))
    if not (alone or (source.is_folder and home != source.path)):
        return
    homes = (home, home.parent) if home.name.startswith(_CHECKPOINT) else (home,)
    found = [path for place in homes for name in IN_FOLDER if _is_file(path := place / name)]
    if found and (source.is_folder or _only_log(home, source.path)):
        yield from found


def _only_log(folder: Path, log: Path) -> bool:
    """Tell whether no other log lies beside this one: else a configuration may be any one's."""
    try:
        others = [p.name.lower() for p in folder.iterdir() if p.name != log.name]
    except OSError:
        return False
    own = log.name.split(".")[0].lower()
    logs = [name for name in others if name.endswith(_LOG_SUFFIXES) and name not in _NO_LOG]
    return all(name.split(".")[0] == own for name in logs)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _read(path: Path, notes: list[Note]) -> dict[str, Scalar] | None:
    """Return the settings in a file, None where it holds none; notes say why."""
    try:
        raw = path.read_bytes()[: MAX_BYTES + 1]
    except OSError as error:
        notes.append(_note(path, f"cannot be read ({(error.strerror or 'unreadable').lower()})"))
        return None
    if len(raw) > MAX_BYTES:
        notes.append(_note(path, f"is larger than {MAX_BYTES >> 10} KiB, which no configuration is"))
        return None
    text = raw.decode("utf-8-sig", "replace")
    try:
        value = json.loads(text) if path.suffix == ".json" else parse_yaml(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else "it cannot be parsed"
        notes.append(_note(path, f"was not read: {said}"))
        return None
    if not isinstance(value, dict):
        notes.append(_note(path, "holds no settings by name"))
        return None
    if path.name == METADATA:  # of the machine and the user nothing is kept, only the command line
        return dict(options(value.get("args")))
    found, left_out = flat(value)
    if left_out:
        what = counted(left_out, "value that is", "values that are")
        notes.append(_note(path, f"holds {what} no number, word or switch, or too many or too deep; left out"))
    return of_tracker(found)


def _note(path: Path, reason: str) -> Note:
    return Note("config_not_read", f"{path.name} {reason}")

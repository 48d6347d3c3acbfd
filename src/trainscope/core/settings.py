"""Gate, detector and expectation settings, from ``trainscope.toml`` or ``[tool.trainscope]``.

.. code-block:: toml

    fail_on = "warning"                 # never | info | warning | error
    gate = "all"                        # all | new
    select = ["spikes", "non_finite"]   # only these detectors; default: all
    ignore = ["plateau"]                # all but these
    expect = ["train/loss at step 200 <= 6.5", "eval/loss min < 3"]

    command = ["python", "train.py"]    # what `trainscope ci` runs, with the recorder injected
    logs = ["runs/*/metrics.jsonl"]     # or what it reads instead
    baseline = ["baseline.arrow"]       # what it compares with
    steps = 200                         # optimizer steps of a smoke run
    seed = 0                            # set for a smoke run; default: the script's own
    timeout = 3600                      # seconds

    [detectors.spikes]                  # every key is optional
    enabled = true
    severity = "info"                   # caps or raises every finding of this detector
    min_rise = 0.1                      # any parameter that `trainscope explain spikes` lists
"""

from __future__ import annotations

import codecs
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.core.finding import Severity

FailOn = Literal["never", "info", "warning", "error"]
FILE_NAME = "trainscope.toml"
MAX_PARAMETER = 10**9
"""Largest number that a detector takes."""
MAX_BYTES = 16 << 20
"""Largest settings file, in bytes."""


class Settings(BaseModel):
    """What a user may set for reading, judging and gating; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    fail_on: FailOn = "warning"
    """The least severity that fails the gate."""
    gate: Literal["all", "new"] = "all"
    """Whether known findings (those the baseline has) fail the gate too; of `trainscope ci` with a baseline the default
    is "new"."""
    select: list[str] = Field(default_factory=list)
    """Detector ids to run; empty means all."""
    ignore: list[str] = Field(default_factory=list)
    """Detector ids to leave out."""
    expect: list[str] = Field(default_factory=list)
    """Metric expectations, such as ``train/loss at step 200 <= 6.5``."""
    command: list[str] = Field(default_factory=list)
    """The training command of `trainscope ci`."""
    logs: list[str] = Field(default_factory=list)
    """Logs that `trainscope ci` reads where there is no command."""
    baseline: list[str] = Field(default_factory=list)
    """Baseline files, folders or logs of `trainscope ci`."""
    steps: int = Field(default=200, ge=1)
    """Optimizer steps of a smoke run."""
    seed: int | None = Field(default=None, ge=0)
    """Seed of a smoke run; unset leaves the script's own alone."""
    timeout: float = Field(default=3600.0, gt=0)
    """Seconds after which a smoke run is ended, and has failed."""
    detectors: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Detector id to its parameters, plus ``enabled`` and ``severity``."""


def parse_severity(value: object, where: str) -> Severity:
    """Return the severity called `value`.

    Raises
    ------
    ConfigError
        If there is none; names `where` the value stood.
    """
    names = [s.label for s in Severity]
    if not isinstance(value, str) or value not in names:
        raise ConfigError(f"{where}: {value!r} is not a severity{did_you_mean(str(value), names)}")
    return Severity[value.upper()]


def check_parameter(value: object, default: object, where: str) -> object:
    """Return a detector's parameter as its default is typed; lists become tuples.

    Every number that a detector takes is a length, a share or a ratio: finite, and not below 0.

    Raises
    ------
    ConfigError
        If `value` is of another type than `default`, or no such number; names `where` the value stood.
    """
    if isinstance(value, list):
        value = tuple(value)
    kinds = (int, float) if isinstance(default, float) else type(default)
    if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, kinds):
        raise ConfigError(f"{where}: expected {type(default).__name__}, got {_short(value)}")
    if isinstance(value, (int, float)) and not 0 <= value <= MAX_PARAMETER:
        raise ConfigError(f"{where}: expected a number from 0 to {MAX_PARAMETER}, got {_short(value)}")
    return value


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def settings_from(data: object, where: str) -> Settings:
    """Validate a settings table.

    Raises
    ------
    ConfigError
        One line that names the first wrong key, what it should be, and the nearest known key.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a table of settings, got {type(data).__name__}")
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(
                f"{where}: unknown key {key!r}{did_you_mean(str(first['loc'][-1]), Settings.model_fields)}"
            ) from None
        got = repr(first["input"])
        raise ConfigError(f"{where}: {key} = {got[:60]}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def load_settings(path: Path | None = None, *, start: Path | None = None) -> Settings:
    """Read the settings file, or find one.

    Parameters
    ----------
    path : Path, optional
        A ``trainscope.toml`` or a ``pyproject.toml``. It must exist.
    start : Path, optional
        Without `path`: the folder to search, then its parents up to the repository's root, for a
        ``trainscope.toml`` or a ``pyproject.toml`` with ``[tool.trainscope]``; by default the working folder.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not TOML, or holds an unknown key or a wrong value.
    """
    file, found = _find(path, start)
    if file is None:
        return Settings()
    folder = (start or Path.cwd()).resolve()
    return settings_from(found, file.name if path is None and file.parent == folder else str(file))


def settings_file(path: Path | None = None, *, start: Path | None = None) -> Path | None:
    """Return the file that :func:`load_settings` reads, None if there is none.

    Raises
    ------
    ConfigError
        As :func:`load_settings` does.
    """
    # What was named may be a pipe, which can be read only once.
    return path if path is not None else _find(path, start)[0]


def _find(path: Path | None, start: Path | None) -> tuple[Path | None, object]:
    """Return the settings file and its table."""
    if path is not None:
        found = _table_of(path)
        if found is None:
            raise ConfigError(f"{path}: no [tool.trainscope] table")
        return path, found
    folder = (start or Path.cwd()).resolve()
    for parent in (folder, *folder.parents):
        for name in (FILE_NAME, "pyproject.toml"):
            candidate = parent / name
            if os.path.isfile(candidate):  # noqa: PTH113 (the method raises where a folder is closed to us)
                found = _table_of(candidate)
                if found is not None:
                    return candidate, found
        if os.path.exists(parent / ".git"):  # noqa: PTH110
            break
    return None, None


def _table_of(path: Path) -> object:
    try:
        data = tomllib.loads(_text_of(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({(error.strerror or str(error)).lower()})") from None
    # An integer of thousands of digits is a plain ValueError; a million brackets end the recursion.
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{path}: not valid TOML ({why})") from None
    if path.name == "pyproject.toml":
        tool = data.get("tool", {})
        return tool.get("trainscope") if isinstance(tool, dict) else None
    return data


def _text_of(path: Path) -> str:
    """Return the text of a settings file; TOML is UTF-8, and some editors put a byte order mark before it."""
    if path.exists() and not path.is_file() and not path.is_fifo():
        raise ConfigError(f"{path}: cannot be read (it is no file)")
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES >> 20} MiB, so it is no settings file")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{path}: cannot be read (it is UTF-16; save it as UTF-8)")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read (byte {error.start} is not UTF-8; save it as UTF-8)") from None

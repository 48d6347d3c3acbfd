"""Reads one table of settings from a YAML, JSON or TOML file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from trainscope.core.config_values import plain
from trainscope.core.errors import ConfigError


def read_table(path: Path) -> dict[str, Any]:
    """Return the table in a ``.toml``, ``.json`` or (any other suffix) YAML file; empty for an empty file.

    Raises
    ------
    ConfigError
        If the file cannot be read or parsed, or holds something other than a table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read (not UTF-8: {error.reason} at byte {error.start})") from None
    except ValueError as error:
        raise ConfigError(f"{str(path)!r}: cannot be read ({error})") from None
    suffix = path.suffix.lower()
    try:
        data = _parse(text, suffix)
        plain(data)  # an alias in YAML may lead back to itself
    except RecursionError:
        raise ConfigError(f"{path}: not a table of settings (nested too deeply)") from None
    except ValueError as error:
        first = " ".join(str(error).split())
        raise ConfigError(f"{path}: not valid {suffix[1:].upper() or 'YAML'} ({first[:160]})") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a table of settings, got {type(data).__name__}")
    odd = next((key for key in data if not isinstance(key, str)), None)
    if odd is not None:
        raise ConfigError(f"{path}: {odd!r}: the name of a setting must be text")
    return data


def _parse(text: str, suffix: str) -> object:
    if suffix == ".json":
        return json.loads(text)
    if suffix == ".toml":
        return tomllib.loads(text)
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from None

"""How a step talks to the runner: commands on standard output, and files that it reads afterwards.

A line that begins with ``::``, or has ``##[`` and the name of a command anywhere in it, is obeyed by the runner whoever
wrote it (actions/runner, ``ActionCommand``). So text of others is escaped into the data of one of our commands, stands
between two fences, where nothing is obeyed, or is disarmed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from trainscope.core.errors import writing_in
from trainscope.report.text import well_formed

MAX_MESSAGE = 4096
"""Characters of an annotation that the runner keeps (actions/runner, ``ExecutionContext``)."""
_OLD = re.compile(r"(##\w{0,20})\[")
_NEW = re.compile(r"\A(\s*)::")


def command(name: str, message: str, **properties: str | int | None) -> str:
    """Return one workflow command as a line; properties that are None are left out."""
    given = {key: str(value) for key, value in properties.items() if value is not None}
    about = ",".join(f"{key}={_property(value)}" for key, value in given.items())
    return f"::{name}{' ' if about else ''}{about}::{_data(message)}"


def disarmed(line: str) -> str:
    """Return a line that no runner obeys; the same line where none would.

    The older form is obeyed in the middle of a line too, also by Azure Pipelines (``##vso[``) and TeamCity.
    """
    return _NEW.sub(r"\1\\x3a:", _OLD.sub(r"\1\\x5b", line))


def fences() -> tuple[str, str]:
    """Return the line after which the runner obeys nothing, and the one that ends that; nobody can guess it."""
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}", f"::{token}::"


def write_outputs(path: Path, values: Mapping[str, str]) -> None:
    """Append outputs of a step to the file of ``GITHUB_OUTPUT``.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    append(path, "".join(_assignment(name, value) for name, value in values.items()))


def append(path: Path, text: str) -> None:
    """Append text to one of the runner's files.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    with writing_in(path), path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(well_formed(text))


def _assignment(name: str, value: str) -> str:
    # A value of several lines must not be able to end itself and set another output.
    delimiter = f"end_{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

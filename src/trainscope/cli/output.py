"""Where reports go: standard output or a file, whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from trainscope.core.errors import ConfigError


def write_stdout(text: str) -> None:
    """Write a report to standard output; a reader that went away is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Send what is still to come nowhere: Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write one line of chatter to standard error."""
    click.echo(text, err=True)


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Raises
    ------
    ConfigError
        If the folder is missing or closed to us, or the path is a folder.
    """
    if path.is_dir():
        raise ConfigError(f"--out {path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"--out {path}: there is no folder {str(path.parent)!r}; create it first")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"--out {path}: folder {str(path.parent)!r} cannot be written to")


def write_file(path: Path, text: str) -> None:
    """Write a report to a file so that nobody ever sees half of it.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    check_writable(path)
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        # A temporary file is private; a report has the mode any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise ConfigError(f"--out {path}: cannot be written ({error.strerror})") from None

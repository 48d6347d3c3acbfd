"""Where reports go: standard output or a file, whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

from trainscope.core.errors import ConfigError
from trainscope.core.files import PART, sweep

STDOUT = "-"
_PREFIX = ".trainscope."
"""Of a report that is not whole yet."""


def write_stdout(text: str) -> bool:
    """Write a report to standard output, and return whether that went well.

    A reader that went away, or a standard output that was closed, is no error: nobody wanted to see it.
    A full disk is one, and is told.
    """
    if sys.stdout is None:
        return True
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        tell(f"standard output cannot be written ({error.strerror})")
        return False
    return True


def silence_stdout() -> None:
    """Send what is still to come nowhere: Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write chatter to standard error, printable and with nothing that a CI obeys.

    Where that is closed or full, there is nobody to tell.
    """
    from trainscope.github.workflow_commands import disarmed
    from trainscope.report.text import printable

    try:
        click.echo("\n".join(disarmed(printable(line)) for line in text.split("\n")), err=True)
    except OSError:
        return


def tell(problem: str) -> None:
    """Write one problem to standard error: one line, printable, its middle cut out where it is endless."""
    from trainscope.report.text import prose

    say(f"error: {prose(problem)}")


def is_stdout(path: Path) -> bool:
    """Tell whether a path means standard output: ``-``, or the very file that standard output goes to."""
    if str(path) == STDOUT:
        return True
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        return False


def check_writable(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse a file that cannot be written, or that is one of `inputs`, before any work is done.

    Raises
    ------
    ConfigError
        If the folder is missing or closed to us, the path is a folder, write-protected, or an input.
    """
    target = _target_of(path)
    status = _status(target)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"--out {path}: is a folder; name a file in it")
    for used in inputs:
        if status is not None and _is_same(target, used):
            raise ConfigError(f"--out {path}: is the settings file {str(used)!r}; name another file")
    if status is None:
        _check_folder(path, target.parent)
    # Nobody is kept out by the mode of a file more often than by an administrator's rights to ignore it.
    elif not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise ConfigError(f"--out {path}: is write-protected")
    elif stat.S_ISREG(status.st_mode):
        _check_folder(path, target.parent)


def _check_folder(path: Path, folder: Path) -> None:
    status = _status(folder)
    shown = str(path.parent if not path.is_symlink() else folder)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"--out {path}: there is no folder {shown!r}; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {path}: folder {shown!r} cannot be written to")


def write_file(path: Path, text: str) -> None:
    """Write a report to a file so that nobody ever sees half of it.

    A symbolic link is followed and stays. A pipe or a device is written to, never replaced.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    check_writable(path)
    try:
        target = _target_of(path)
        status = _status(target)
        if status is not None and not stat.S_ISREG(status.st_mode):
            _write_into(target, text)
        else:
            _replace(target, text, None if status is None else stat.S_IMODE(status.st_mode))
    except BrokenPipeError:
        return  # whoever read the pipe went away
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written ({error.strerror})") from None


def say_undrawn(charts: int) -> None:
    """Warn of charts that a build of the site could not draw, if there are any."""
    from trainscope.report.text import plural

    if charts:
        say(
            f"warning: {plural(charts, 'chart')} could not be drawn; the pages have the numbers in their place "
            "until the next build, which tries again"
        )


def _write_into(target: Path, text: str) -> None:
    # No O_CREAT and no O_TRUNC: what is there stays what it is.
    with os.fdopen(os.open(target, os.O_WRONLY), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _replace(target: Path, text: str, mode: int | None) -> None:
    temporary: Path | None = None
    sweep(target.parent.glob(f"{_PREFIX}*{PART}"))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=target.parent, prefix=_PREFIX, suffix=PART, delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        if mode is None:
            # A temporary file is private; a report has the mode any new file would have.
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def _target_of(path: Path) -> Path:
    """Return the file behind a chain of symbolic links.

    What a link of a process's own table names (``/dev/fd/63``) has no path of its own: it stays as it is.
    """
    try:
        target = Path(os.path.realpath(path))
        status = path.stat()
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a usable path"
        raise ConfigError(f"--out {path}: cannot be written ({why})") from None
    return target if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else path


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False

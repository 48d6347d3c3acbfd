"""Writing a file: what the operating system says is one line, and nothing half-written is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trainscope.core.errors import StoreError
from trainscope.core.files import PART


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says into one line."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error


@contextmanager
def whole(path: Path, part: Path | None = None) -> Iterator[Path]:
    """Yield where to write a file that takes the place of `path` at the end; what cannot be written is not left.

    Parameters
    ----------
    part : Path, optional
        Beside `path`; its name with ``.part`` behind it by default, which is for files with one writer.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    part = path.with_name(path.name + PART) if part is None else part
    try:
        with writing(path):
            part.unlink(missing_ok=True)
            yield part
            part.replace(path)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def place(path: Path) -> Path:
    """Make the folder that `path` lies in, and return `path`."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path

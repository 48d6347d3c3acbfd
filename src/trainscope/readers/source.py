"""What a reader is given: a path, a folder or standard input, and a first look at its content."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TextIO

from trainscope.core.errors import ReadError
from trainscope.readers.copies import copy_of
from trainscope.readers.decode import DAMAGED, HEAD_BYTES, MAX_BYTES, Decoded, decode, decode_file, decompress

STDIN = "-"
_GENERIC = frozenset({"metrics", "trainer_state", "results", "progress", "history", "log", "events", "scalars"})
_PACKED = frozenset({".gz", ".bz2", ".xz"})
WIDE_HEAD_BYTES = 4 << 20
"""How much a sniffer may see of a file whose first lines are longer than ``HEAD_BYTES``."""
_FEWEST_LINES = 3
_PART_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Head:
    """The start of a source, for sniffing: 64 KiB, or 4 MiB where its first lines are long; unpacked and decoded."""

    name: str
    """Last part of the path, lower case, without a compression suffix."""
    raw: bytes
    """First bytes, unpacked, not decoded; empty for a folder."""
    text: str
    """The same as text; empty for a folder or a binary file."""
    whole: bool
    """The text is the whole file."""
    folder: Path | None = None
    """The folder, where the source is one."""

    def lines(self) -> list[str]:
        """Return the complete lines of the text that are not blank."""
        lines = self.text.splitlines()
        if not self.whole and len(lines) > 1 and not self.text.endswith(("\n", "\r")):
            del lines[-1]
        return [line for line in lines if line.strip()]


@dataclass(frozen=True)
class Source:
    """One file, folder or standard input.

    Parameters
    ----------
    given : str
        As the user wrote it; the only spelling that notes and errors may use.
    data : bytes, optional
        The content, where it does not come from a file.
    copy : Path, optional
        Where a copy of it lies, if `given` is a URI.
    """

    given: str
    data: bytes | None = field(default=None, repr=False)
    copy: Path | None = field(default=None, repr=False)

    @property
    def path(self) -> Path:
        """The path to open."""
        return Path(self.given) if self.copy is None else self.copy

    def inside(self, path: Path) -> Source:
        """Return a file of this folder as a source, called as the user would."""
        if self.copy is None:
            return Source(str(path))
        return Source(f"{self.given.rstrip('/')}/{path.relative_to(self.copy).as_posix()}", copy=path)

    @cached_property
    def is_folder(self) -> bool:
        """Whether the source is a folder."""
        status = None if self.data is not None else status_of(self.path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    @cached_property
    def name(self) -> str:
        """What a person calls the run: the stem, or the folder's name where the stem says nothing."""
        if self.given == STDIN:
            return "stdin"
        path = self.path if self.path.name not in ("", "..") else self.path.resolve()
        name = path.name
        if self.is_folder:
            return name
        while Path(name).suffix.lower() in _PACKED:
            name = Path(name).stem
        stem = Path(name).stem if not name.startswith(".") else name
        if stem.endswith(".trainer_state"):
            stem = stem[: -len(".trainer_state")]
        if stem in _GENERIC or "tfevents" in name:
            parent = path.parent if path.parent.name not in ("", "..") else path.resolve().parent
            return parent.name or stem
        return stem

    def read(self) -> bytes:
        """Return the raw content.

        Raises
        ------
        ReadError
            If it cannot be opened.
        """
        if self.data is not None:
            return self.data
        try:
            return self.path.read_bytes()
        except (OSError, ValueError) as error:
            raise ReadError(self.given, why(error)) from None

    def decoded(self) -> Decoded:
        """Return the content as UTF-8.

        Raises
        ------
        ReadError
            If it cannot be opened or unpacked.
        """
        return decode_file(self.read(), self.given)

    @cached_property
    def head(self) -> Head:
        """The first look.

        Raises
        ------
        ReadError
            If the source cannot be opened.
        """
        name = self.path.name.lower()
        for suffix in _PACKED:
            name = name.removesuffix(suffix)
        if self.is_folder:
            return Head(name, b"", "", whole=True, folder=self.path)
        for limit in (HEAD_BYTES, WIDE_HEAD_BYTES):
            start, more = self._start(limit)
            raw, damaged, over = decompress(start, limit=limit)
            if raw.count(b"\n", 0, limit) + raw.count(b"\r", 0, limit) >= _FEWEST_LINES or not (more or over):
                break
        if damaged and not raw and not more:
            raise ReadError(self.given, DAMAGED)
        raw = raw[:limit]
        text = decode(raw)
        shown = "" if text.binary else text.data.decode("utf-8", "replace")
        return Head(name, raw, shown, whole=not more and not over)

    def _start(self, limit: int) -> tuple[bytes, bool]:
        """Return the first bytes as they are stored, and whether there are more."""
        if self.data is not None:
            return self.data[:limit], len(self.data) > limit
        try:
            with self.path.open("rb") as file:
                start = file.read(limit + 1)
        except (OSError, ValueError) as error:
            raise ReadError(self.given, why(error)) from None
        return start[:limit], len(start) > limit


def why(error: OSError | ValueError) -> str:
    """Return why a path could not be opened, in words fit for a ReadError."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError):
        return f"cannot be read ({(error.strerror or type(error).__name__).lower()})"
    return "not a usable path"


def status_of(path: str | Path) -> os.stat_result | None:
    """Return what the system says of a path; None where it says nothing, whatever the reason."""
    try:
        return os.stat(path)  # noqa: PTH116 (a path may hold a NUL, which Path.stat passes on too)
    except (OSError, ValueError):
        return None


def open_source(path: str | Path) -> Source:
    """Return the source called `path`; ``-`` reads standard input to its end.

    A URI (``s3://``, ``gs://``, ``memory://``, ``file://``...) is copied to a temporary folder first. What is
    no regular file (a pipe, ``/dev/stdin``, the ``/dev/fd/63`` of a shell's ``<(...)``) can be read only once:
    it is read here, and its bytes are kept.

    Raises
    ------
    ReadError
        If it is a device, which may have no end, or holds more than ``decode.MAX_BYTES``; if there is nothing at
        a URI, its store cannot be read, or the package that speaks to it is missing.
    """
    given = str(path)
    copy = copy_of(given)
    if copy is not None:
        return Source(given, copy=copy)
    if given == STDIN:
        if sys.stdin is None:
            raise ReadError(given, "standard input is closed")
        _refuse_endless(given, os.fstat(sys.stdin.fileno()) if _has_descriptor(sys.stdin) else None)
        return Source(given, _bounded(sys.stdin.buffer, given))
    status = status_of(given)
    if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return Source(given)
    _refuse_endless(given, status)
    try:
        with Path(given).open("rb", buffering=0) as file:
            return Source(given, _bounded(file, given))
    except OSError as error:
        raise ReadError(given, why(error)) from None


def _has_descriptor(stream: TextIO) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream that somebody put there, such as BytesIO
        return False
    return True


def _refuse_endless(given: str, status: os.stat_result | None) -> None:
    """Refuse devices, except the terminal that standard input is, and the empty one."""
    if status is None or not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        return
    null = status_of(os.devnull)
    if null is not None and os.path.samestat(status, null):
        return
    terminal = sys.stdin is not None and _has_descriptor(sys.stdin) and sys.stdin.isatty()
    if terminal and os.path.samestat(status, os.fstat(sys.stdin.fileno())):
        return
    raise ReadError(given, "is a device, not a log; name a file, a folder or a pipe")


def _bounded(stream: IO[bytes], given: str, limit: int = MAX_BYTES) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := stream.read(_PART_BYTES):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise ReadError(given, f"holds more than {limit >> 20} MiB; cut it into smaller files")
    return b"".join(parts)

"""What a reader is given: a path, a folder or standard input, and a first look at its content."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from trainscope.core.errors import ReadError
from trainscope.readers.decode import HEAD_BYTES, Decoded, decode, decode_file, decompress

STDIN = "-"
_GENERIC = frozenset({"metrics", "trainer_state", "results", "progress", "history", "log", "events", "scalars"})
_PACKED = frozenset({".gz", ".bz2", ".xz"})


@dataclass(frozen=True, slots=True)
class Head:
    """The start of a source, for sniffing: at most 64 KiB, unpacked and decoded."""

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
    """

    given: str
    data: bytes | None = field(default=None, repr=False)

    @property
    def path(self) -> Path:
        """The path to open."""
        return Path(self.given)

    @cached_property
    def is_folder(self) -> bool:
        """Whether the source is a folder."""
        return self.data is None and self.path.is_dir()

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
            raise ReadError(self.given, _why(error)) from None

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
        if self.data is not None:
            start, more = self.data[:HEAD_BYTES], len(self.data) > HEAD_BYTES
        else:
            try:
                with self.path.open("rb") as file:
                    start = file.read(HEAD_BYTES + 1)
            except (OSError, ValueError) as error:
                raise ReadError(self.given, _why(error)) from None
            start, more = start[:HEAD_BYTES], len(start) > HEAD_BYTES
        raw, _, over = decompress(start, limit=HEAD_BYTES)
        raw = raw[:HEAD_BYTES]
        text = decode(raw)
        shown = "" if text.binary else text.data.decode("utf-8", "replace")
        return Head(name, raw, shown, whole=not more and not over)


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or type(error).__name__})"
    return "not a usable path"


def open_source(path: str | Path) -> Source:
    """Return the source called `path`; ``-`` reads standard input to its end."""
    given = str(path)
    if given == STDIN:
        return Source(given, sys.stdin.buffer.read())
    return Source(given)

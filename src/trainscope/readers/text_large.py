"""Large texts, a block at a time: what is in memory then are the numbers that count, and not the text.

Only for what needs no second look: files of their own, uncompressed, in ASCII or UTF-8. All others are read as a whole.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from trainscope.core.errors import ReadError
from trainscope.readers.decode import decode, decompress
from trainscope.readers.source import Source, status_of, why
from trainscope.readers.text_lines import BLOCK_BYTES, Lines, lines_of

LARGE = 32 << 20
"""Bytes from which on it matters."""
_LONGEST_LINE = 4
"""Blocks."""
_SAMPLE = 4096
"""Bytes that show a compressed file, a byte order mark, another encoding."""


class UnusualTextError(Exception):
    """The text needs to be seen as a whole."""


def is_large(source: Source) -> bool:
    """Tell whether a source is a file that is worth to be read in blocks."""
    status = None if source.data is not None else status_of(source.path)
    return status is not None and stat.S_ISREG(status.st_mode) and status.st_size >= LARGE


def lines_of_large(source: Source) -> Lines:
    """Return the lines of a large file.

    Raises
    ------
    UnusualTextError
        If it must be read as a whole.
    ReadError
        If it cannot be read.
    """
    try:
        return lines_of(_blocks(source.path))
    except OSError as error:
        raise ReadError(source.given, why(error)) from None


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the text in blocks of whole lines, without the line break at the end of each."""
    rest = b""
    with path.open("rb", buffering=0) as file:
        _check_kind(file.read(_SAMPLE))
        file.seek(0)
        while part := file.read(BLOCK_BYTES):
            rest += part
            if (end := rest.rfind(b"\n")) >= 0:
                yield _checked(rest[:end])
                rest = rest[end + 1 :]
            elif (end := rest.rfind(b"\r", 0, -1)) >= 0:  # a progress bar that goes on and on
                yield _checked(rest[: end + 1])
                rest = rest[end + 1 :]
            elif len(rest) > _LONGEST_LINE * BLOCK_BYTES:
                raise UnusualTextError  # all one line
    if rest:
        yield _checked(rest)


def _check_kind(start: bytes) -> None:
    text = decode(start)
    same = start.replace(b"\r", b"\n").startswith(text.data.replace(b"\r", b"\n"))
    if text.binary or text.notes or not same or decompress(start)[0] != start:
        raise UnusualTextError


def _checked(block: bytes) -> bytes:
    if b"\0" in block:
        raise UnusualTextError
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            raise UnusualTextError from None
    return block

r"""Bytes of a file to clean UTF-8 bytes: compression, byte order marks, other encodings, stray NULs.

Every text reader works on UTF-8 bytes with ``\n`` or ``\r\n`` line ends; what had to be assumed to get
there comes back as notes.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from trainscope.core.errors import ReadError
from trainscope.core.run import Note
from trainscope.readers.notes import counted

HEAD_BYTES = 64 * 1024
"""How much of a file a sniffer may see."""
MAX_BYTES = 4 * 1024**3
"""Largest text read, in bytes: a compressed file that unpacks to more is a mistake or an attack."""

DAMAGED = "is a damaged compressed file: nothing of it could be unpacked"

_CHUNK = 1 << 20
_CONTROLS = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\r\f\b\x1b")
"""Bytes that text does not hold."""
_ONLY_WINDOWS = re.compile(rb"[\x80-\x9f]")
"""Characters there, and control codes in Latin-1."""
_Engine: TypeAlias = "zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text as UTF-8, and what was odd about it."""

    data: bytes
    notes: tuple[Note, ...] = ()
    binary: bool = False
    """Too many control characters to be text; `data` is as it was."""


def _decompressor(data: bytes) -> _Engine | None:
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31)
    if data.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    if data.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMADecompressor()
    return None


def decompress(data: bytes, *, limit: int = MAX_BYTES) -> tuple[bytes, bool, bool]:
    """Undo gzip, bzip2 or xz, told apart by their first bytes.

    Returns
    -------
    data : bytes
        As far as it could be unpacked, at most `limit` bytes and one block more.
    damaged : bool
        The stream ended early or is broken: a run that was killed, or a copy that was cut.
    over : bool
        There was more than `limit`.
    """
    out: list[bytes] = []
    size, rest = 0, data
    while rest:
        engine = _decompressor(rest)
        if engine is None:
            if not out:
                return data[:limit], False, len(data) > limit
            return b"".join(out), bool(rest.strip(b"\0")), False
        position = 0
        try:
            while position < len(rest) and not engine.eof:
                block = rest[position : position + _CHUNK]
                position += _CHUNK
                for piece in _pieces(engine, block):
                    out.append(piece)
                    size += len(piece)
                    if size > limit:
                        return b"".join(out), False, True
        except (zlib.error, lzma.LZMAError, OSError, EOFError):
            return b"".join(out), True, False
        if not engine.eof:
            return b"".join(out), True, False
        rest = engine.unused_data + rest[position:]
    return b"".join(out), False, False


def _pieces(engine: _Engine, block: bytes) -> Iterator[bytes]:
    """Unpack one block lazily, 16 MiB at a time: a block of zeros can grow a thousandfold."""
    yield engine.decompress(block, 16 * _CHUNK)
    if isinstance(engine, (bz2.BZ2Decompressor, lzma.LZMADecompressor)):
        while not engine.eof and not engine.needs_input:
            yield engine.decompress(b"", 16 * _CHUNK)
    else:
        while engine.unconsumed_tail:
            yield engine.decompress(engine.unconsumed_tail, 16 * _CHUNK)


def decode(data: bytes) -> Decoded:
    """Return `data` as UTF-8, whatever encoding it was written in."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            body = data[len(bom) :]
            if encoding == "utf-8":
                return _clean(_as_utf8(body))
            text = body.decode(encoding, "replace")
            return _clean(Decoded(text.encode("utf-8", "replace"), (_encoding_note(encoding[:6].upper()),)))
    wide = _wide_without_mark(data[:4096])
    if wide is not None:
        text = data.decode(wide, "replace")
        return _clean(Decoded(text.encode("utf-8", "replace"), (_encoding_note("UTF-16"),)))
    return _clean(_as_utf8(data))


def _encoding_note(name: str) -> Note:
    return Note("encoding", f"the text is {name}; it was read as such")


def _as_utf8(data: bytes) -> Decoded:
    if data.isascii():
        return Decoded(data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(data) - 3 and error.reason == "unexpected end of data":
            return Decoded(data[: error.start])
        return _as_utf8_with_errors(data) or _as_one_byte_each(data)
    return Decoded(data)


def _as_utf8_with_errors(data: bytes) -> Decoded | None:
    """Return UTF-8 of which some bytes are broken, as where two processes wrote; None if it is something else."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    if len(text) - len(text.encode("ascii", "ignore")) < 2 * broken:
        return None
    message = f"{counted(broken, 'place of the text is', 'places of the text are')} not valid UTF-8"
    return Decoded(text.encode(), (Note("encoding", f"{message}; the rest was read as such", count=broken),))


def _as_one_byte_each(data: bytes) -> Decoded:
    count = max(1, sum(byte > 127 for byte in data[:HEAD_BYTES]))
    name, text = "Latin-1", data.decode("latin-1")
    if _ONLY_WINDOWS.search(data):
        with suppress(UnicodeDecodeError):
            name, text = "Windows-1252", data.decode("cp1252")
    note = Note("encoding", f"the text is not valid UTF-8; it was read as {name}", count=count)
    return Decoded(text.encode(), (note,))


def _wide_without_mark(head: bytes) -> str | None:
    """UTF-16 without a byte order mark: every other byte of mostly ASCII text is NUL."""
    if len(head) < 8:
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / max(1, len(head[1::2]))
    if odd > 0.8 and even < 0.1:
        return "utf-16-le"
    if even > 0.8 and odd < 0.1:
        return "utf-16-be"
    return None


def _clean(text: Decoded) -> Decoded:
    head = text.data[:HEAD_BYTES]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > 0.02 * len(head) or head.count(0) > 0.5 * len(head) > 0:
        return replace(text, binary=True)
    data, notes = text.data, text.notes
    nuls = data.count(0)
    if nuls:
        data = data.replace(b"\0", b"")
        notes = (*notes, Note("nul_bytes", f"{nuls} NUL bytes were removed", count=nuls))
    if b"\r" in data and b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return Decoded(data, notes)


def decode_file(data: bytes, given: str, *, limit: int = MAX_BYTES) -> Decoded:
    """Decompress and decode the content of the file that the user calls `given`.

    Raises
    ------
    ReadError
        If it holds more than `limit` bytes, or nothing of it can be unpacked.
    """
    plain, damaged, over = decompress(data, limit=limit)
    if over:
        raise ReadError(given, f"holds more than {limit >> 20} MiB of text; cut it into smaller files")
    if damaged and not plain:
        raise ReadError(given, DAMAGED)
    text = decode(plain)
    if damaged:
        note = Note("truncated", "the compressed file ends early or is damaged; what could be unpacked was read")
        return replace(text, notes=(*text.notes, note))
    return text

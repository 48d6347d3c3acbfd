"""Reads what a check left, from a folder or from a zip archive that nobody has to trust.

The archive of a pull request from a fork is its author's: members are read by name and into memory, nothing is
unpacked; links, odd names, huge or deeply nested files are refused; everything is checked against our types.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import ValidationError

from trainscope.core.errors import ReadError, TrainscopeError
from trainscope.github.result import FILE, CheckResult
from trainscope.report.document import Document
from trainscope.site import bundle
from trainscope.site.bundle import RECORDS, Record

DOCUMENT = "findings.json"
MAX_ZIP = 32 << 20
"""Bytes of an archive that are downloaded."""
MAX_MEMBERS = 2000
MAX_FILES: Mapping[str, int] = {FILE: 256 << 10, DOCUMENT: 8 << 20}
"""Most bytes of each file that is read from an archive."""
MAX_OWN = 256 << 20
"""Most bytes of a file in a folder of our own: a thousand logs make a document of many MiB."""
MAX_RECORDS = 8
MAX_DEPTH, MAX_VALUES, MAX_TEXT, MAX_INT = 24, 1_000_000, 20_000, 2**63
RECORD = re.compile(rf"{RECORDS}/([0-9a-f]{{12}}(?:-\d{{1,6}})?)/{re.escape(bundle.NAME)}", re.ASCII)
"""Name of a record in a bundle; its group is the id of the run."""

_DAMAGED = (NotImplementedError, RuntimeError, EOFError, ValueError)
Kind = TypeVar("Kind", CheckResult, Document)
Files = Mapping[str, Callable[[int], bytes]]
"""Name to a function that returns the content up to so many bytes."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a check left."""

    result: CheckResult
    document: Document | None
    """None where nothing could be judged."""
    records: tuple[Record, ...]
    """Of the first few runs, for their curves."""
    dropped: tuple[str, ...] = ()
    """What was there and could not be used."""


def read_folder(folder: Path) -> Bundle:
    """Read the bundle in a folder.

    Raises
    ------
    ReadError
        If it holds none, or a damaged one.
    """
    if not folder.is_dir():
        raise ReadError(folder, "no such folder; name the one that the check left")
    names = [
        FILE,
        DOCUMENT,
        *sorted(p.relative_to(folder).as_posix() for p in folder.glob(f"{RECORDS}/*/{bundle.NAME}")),
    ]
    files = {name: _reader(folder / name) for name in names if (folder / name).is_file()}
    return _bundle(files, str(folder), is_own=True)


def read_zip(raw: bytes, source: str) -> Bundle:
    """Read the bundle in the bytes of an archive of unknown origin.

    Raises
    ------
    ReadError
        If it is no archive, holds a link, a name that leads out of it or too many files, or no valid bundle.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise ReadError(source, f"holds {len(members)} files; a bundle has no more than {MAX_MEMBERS}")
            for member in members:
                _check_member(member, source)
            if len({m.filename for m in members}) < len(members):
                raise ReadError(source, "holds two files of one name")
            return _bundle({m.filename: _member(archive, m) for m in members}, source, is_own=False)
    # All that a damaged or hostile archive makes zipfile raise; bzip2 has nothing of its own and raises OSError.
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, LookupError, *_DAMAGED) as error:
        raise ReadError(source, f"is no whole archive ({error})") from None


def _check_member(member: zipfile.ZipInfo, source: str) -> None:
    name = member.filename
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or "\\" in name or ":" in name or "\0" in name or ".." in parts:
        raise ReadError(source, f"holds {name[:80]!r}, which leads out of it")
    mode = member.external_attr >> 16
    if mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and stat.S_IFMT(mode):
        raise ReadError(source, f"holds {name[:80]!r}, which is a link or no file")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        # The size that the archive claims is not believed: reading stops.
        with archive.open(member) as file:
            return file.read(limit)

    return read


def _reader(path: Path) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        try:
            with path.open("rb") as file:
                return file.read(limit)
        except OSError as error:
            raise ReadError(path, f"cannot be read ({error.strerror})") from None

    return read


def _bundle(files: Files, source: str, *, is_own: bool) -> Bundle:
    if FILE not in files:
        raise ReadError(source, f"holds no {FILE}: it is not what the action left")
    result = _valid(CheckResult, _json(files, FILE, source, is_own=is_own), f"{source}/{FILE}")
    document = None
    if DOCUMENT in files:
        document = _valid(Document, _json(files, DOCUMENT, source, is_own=is_own), f"{source}/{DOCUMENT}")
    records: list[Record] = []
    dropped: list[str] = []
    for name in [n for n in sorted(files) if RECORD.fullmatch(n)][:MAX_RECORDS]:
        try:
            records.append(_record(files[name](bundle.MAX_BYTES * 2), f"{source}/{name}"))
        except TrainscopeError as error:
            # A curve is an extra; what the check found is shown without it.
            dropped.append(str(error))
    return Bundle(result, document, tuple(records), tuple(dropped))


def _record(raw: bytes, source: str) -> Record:
    text = raw.decode("ascii", "replace")
    _limits(_parsed(text.removeprefix(bundle.HEAD).removesuffix(bundle.TAIL).encode(), source), source)
    return bundle.from_text(text, source)


def _json(files: Files, name: str, source: str, *, is_own: bool) -> object:
    limit = MAX_OWN if is_own else MAX_FILES[name]
    raw = files[name](limit + 1)
    if len(raw) > limit:
        raise ReadError(f"{source}/{name}", f"has more than {limit >> 10} KiB")
    found = _parsed(raw, f"{source}/{name}")
    if not is_own:
        _limits(found, f"{source}/{name}")
    return found


def _parsed(raw: bytes, source: str) -> object:
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse)
    # Thousands of digits are a ValueError, a million brackets a RecursionError.
    except (ValueError, RecursionError):
        raise ReadError(source, "is not JSON") from None


def _refuse(constant: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{constant} is not JSON")


def _limits(data: object, source: str) -> None:
    """Refuse what no document of ours has: endless texts, numbers that cannot be printed, a bottomless tree."""
    left = MAX_VALUES
    waiting: list[tuple[object, int]] = [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise ReadError(source, "is nested too deeply" if depth > MAX_DEPTH else "holds too many values")
        if isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif isinstance(value, str) and len(value) > MAX_TEXT:
            raise ReadError(source, f"holds a text of more than {MAX_TEXT} characters")
        elif isinstance(value, int) and abs(value) >= MAX_INT:
            raise ReadError(source, "holds a number of more than 64 bits")


def _valid(kind: type[Kind], data: object, source: str) -> Kind:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:200] or "document"
        raise ReadError(source, f"{where}: {first['msg'].lower()}"[:500]) from None

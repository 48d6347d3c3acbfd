"""Arrow stream files that survive a kill: whole messages appended with one write, torn tails cut off.

A file is a schema message followed by record batches, without an end mark, so that it can be appended
to at any time and plain ``pyarrow.ipc.open_stream`` reads it up to the last whole batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from trainscope.store.files import place as place
from trainscope.store.files import whole as whole
from trainscope.store.files import writing as writing

_FILE_MAGIC = b"ARROW1"
_DAMAGE = (OSError, UnicodeDecodeError, pa.ArrowException)
"""What a damaged file makes Arrow raise: sizes, types, text and counts may all be nonsense."""
COPIED_BYTES = 1 << 20
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def append(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Append `batches`, which must have `schema`, with a single write; starts the file if need be.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    with writing(path):
        is_new = not path.exists() or not path.stat().st_size
    append_bytes(path, messages(schema if is_new else None, batches))


def messages(schema: pa.Schema | None, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return the bytes of record batches, after those of a schema where a file starts with them."""
    head = () if schema is None else (schema.serialize(),)
    return b"".join(memoryview(part) for part in (*head, *(batch.serialize() for batch in batches)))


def append_bytes(path: Path, *parts: bytes | memoryview) -> None:
    """Append `parts`, with a single write where they are not large enough for a copy to matter.

    A write that fails half-way (disk full) is undone, so that what follows it stays readable.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    with writing(path):
        fd = os.open(path, _APPEND, 0o666)
        try:
            _write_all(fd, parts if sum(map(len, parts)) > COPIED_BYTES else [b"".join(parts)])
        finally:
            os.close(fd)


def write_whole(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a new file, or replace one, so that a reader sees the old or the new and nothing between."""
    with whole(path) as part:
        append(part, schema, batches)


def replace(new: Path, path: Path, *, after: int) -> None:
    """Put `new` in the place of `path`, with what was appended to that behind the byte `after`.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    with writing(path):
        with path.open("rb") as file:
            file.seek(after)
            tail = file.read()
        append_bytes(new, tail)
        new.replace(path)


def write_dictionary(path: Path, found: list[pa.RecordBatch]) -> None:
    """Replace a file by batches that have dictionary columns, which `append` cannot write."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found[0].schema) as writer:
        for batch in found:
            writer.write_batch(batch)
    with whole(path) as part:
        part.write_bytes(sink.getvalue())


def _write_all(fd: int, parts: Sequence[bytes | memoryview]) -> None:
    total = done = 0
    try:
        for part in parts:
            done = 0
            while done < len(part):
                done += os.write(fd, part[done:] if done else part)
            total, done = total + done, 0
    except BaseException:  # Ctrl-C too: half a message would hide everything that is appended after it
        if total or done:
            os.ftruncate(fd, os.fstat(fd).st_size - total - done)
        raise


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the whole record batches of a stream (or Arrow IPC file); a torn tail ends it."""
    for batch, _ in scan(path):
        yield batch


def read(path: Path) -> pa.Table | None:
    """Return everything readable in the file as a table; None if not even its schema is whole."""
    try:
        with pa.OSFile(str(path)) as source:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
        _checked(table.schema)
        return table
    except _DAMAGE:
        found = list(batches(path))  # what is before the damage; or an Arrow IPC file
    if found:
        return pa.Table.from_batches(found)
    known = schema_of(path)
    return None if known is None else known.empty_table()


def schema_of(path: Path) -> pa.Schema | None:
    """Return the schema of the file, None if it is missing or torn."""
    try:
        with pa.OSFile(str(path)) as source:
            if source.read(6) == _FILE_MAGIC:
                return _checked(pa.ipc.open_file(source).schema)
            source.seek(0)
            return _checked(pa.ipc.open_stream(source).schema)
    except _DAMAGE:
        return None


def _checked(found: pa.Schema) -> pa.Schema:
    """Return a schema whose names are text.

    Raises
    ------
    UnicodeDecodeError
        If a name is damaged; pyarrow finds out only when somebody asks for it.
    """
    found.names  # noqa: B018 - decodes them
    return found


def is_torn(path: Path) -> bool:
    """Tell whether bytes follow the last whole record batch."""
    return whole_length(path) < path.stat().st_size


def whole_length(path: Path) -> int:
    """Return where the last whole message ends, in bytes; 0 if not even the schema is whole."""
    end = 0
    for _, after in scan(path):
        end = after
    if end == 0 and schema_of(path) is not None:
        with pa.OSFile(str(path)) as source:
            pa.ipc.open_stream(source)
            end = source.tell()
    return end


def repair(path: Path) -> None:
    """Cut a torn tail off, so that the file can be appended to again."""
    with writing(path):
        if not path.exists():
            return
        end = whole_length(path)
        if end == 0:
            path.unlink()
        elif end < path.stat().st_size:
            os.truncate(path, end)


def scan(path: Path) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield each whole batch and where it ends."""
    # Not memory-mapped: a writer that cuts a torn tail off would kill a reader that has it mapped.
    try:
        source = pa.OSFile(str(path))
    except OSError:
        return
    with source:
        try:
            if source.read(6) == _FILE_MAGIC:
                reader = pa.ipc.open_file(source)
                _checked(reader.schema)
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index), source.size()
                return
            source.seek(0)
            stream = pa.ipc.open_stream(source)
            _checked(stream.schema)
            while True:
                batch = stream.read_next_batch()
                batch.validate(full=True)
                yield batch, source.tell()
        except (StopIteration, *_DAMAGE):
            return


def remove(path: Path) -> None:
    """Delete a file that may be gone already.

    Raises
    ------
    StoreError
        If the operating system refuses.
    """
    with writing(path):
        path.unlink(missing_ok=True)

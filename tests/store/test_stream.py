import os

import pyarrow as pa
import pytest

from trainscope.core.errors import StoreError
from trainscope.store import schema, stream

SCHEMA = schema.plugin_schema()


def batch(step):
    columns = [pa.array([step, step]), pa.array(["a", "b"]), pa.array(["x", "x"]), pa.array([1.0, None])]
    return pa.record_batch(columns, schema=SCHEMA)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "x.arrow"
    for step in range(3):
        stream.append(found, SCHEMA, [batch(step)])
    return found


def test_a_file_cut_at_any_byte_gives_all_whole_batches_and_can_be_appended_to_again(path):
    data = path.read_bytes()
    seen = set()
    for length in range(0, len(data) + 1, 3):
        path.write_bytes(data[:length])
        table = stream.read(path)
        whole = stream.whole_length(path)
        assert whole <= length
        rows = 0 if table is None else len(table)
        seen.add(rows)
        stream.repair(path)
        stream.append(path, SCHEMA, [batch(9)])
        again = stream.read(path)
        assert len(again) == rows + 2
        assert again.column("step").to_pylist()[-1] == 9
        path.unlink()
    assert seen == {0, 2, 4, 6}


def test_plain_arrow_reads_the_file_whole(path):
    with pa.OSFile(str(path)) as source:
        assert pa.ipc.open_stream(source).read_all().num_rows == 6


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"\xff" * 64, b"not arrow at all", b"ARROW1\0\0"])
def test_a_file_that_is_no_arrow_reads_as_nothing(tmp_path, data):
    path = tmp_path / "x.arrow"
    path.write_bytes(data)
    assert stream.read(path) is None
    assert stream.schema_of(path) is None
    assert stream.whole_length(path) == 0


def test_random_damage_never_raises(path):
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        table = stream.read(path)
        assert table is None or len(table) <= 6


def test_an_arrow_ipc_file_is_read_too(tmp_path):
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(str(path), SCHEMA) as writer:
        writer.write_batch(batch(4))
    assert stream.read(path).column("step").to_pylist() == [4, 4]


@pytest.mark.parametrize("copied", [1 << 20, 0], ids=["in one write", "part by part"])
def test_a_write_that_fails_half_way_is_undone(path, monkeypatch, copied):
    monkeypatch.setattr(stream, "COPIED_BYTES", copied)
    before = path.read_bytes()
    real = os.write

    def disk_full(fd, data):
        if len(data) > 100:
            return real(fd, data[:100])
        raise OSError(28, "No space left on device")

    large = stream.messages(None, [batch(3)])[:150]
    monkeypatch.setattr(os, "write", disk_full)
    with pytest.raises(StoreError, match="No space left on device"):
        stream.append_bytes(path, large[:120], memoryview(large)[120:])
    assert path.read_bytes() == before


def test_a_replaced_file_is_the_old_or_the_new(path, monkeypatch):
    before = path.read_bytes()

    def disk_full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", disk_full)
    with pytest.raises(StoreError):
        stream.write_whole(path, SCHEMA, [batch(7)])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_column_whose_name_is_no_text_reads_as_damage(path):
    path.write_bytes(path.read_bytes().replace(b"plugin", b"plu\xffin"))
    assert stream.read(path) is None
    assert stream.whole_length(path) == 0


@pytest.mark.parametrize("stops", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_file_that_could_not_be_written_whole_stays_what_it_was_and_leaves_no_part(tmp_path, stops):
    path = tmp_path / "manifest.json"
    path.write_text("old")

    def write():
        with stream.whole(path) as part:
            part.write_text("ne")
            raise stops

    with pytest.raises(KeyboardInterrupt if stops is KeyboardInterrupt else StoreError):
        write()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("manifest.json", "old")]

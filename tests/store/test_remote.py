import time
import uuid
from pathlib import Path

import fsspec
import pytest

from store.runs import NAMES, config, make, record
from trainscope.core.errors import ConfigError, ReadError, StoreError
from trainscope.store import remote
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter


@pytest.fixture
def uri():
    root = f"memory://bucket-{uuid.uuid4().hex}/runs"
    yield root
    fsspec.filesystem("memory").store.clear()


def tree(path):
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_closed_run_is_the_same_tree_in_the_remote_store(tmp_path, uri):
    writer = make(tmp_path / "local", range(130), storage_uri=uri, full_resolution_window=50)
    writer.close()
    fetched = remote.fetch(f"{uri}/a", tmp_path / "cache")
    local = tree(writer.path)
    local.pop(".lock")
    assert tree(fetched) == local
    assert RunReader(fetched).layers() == NAMES


def copied_steps(uri: str, cache: Path) -> int:
    try:
        return len(RunReader(remote.fetch(uri, cache)).scalars())
    except ReadError:
        return 0


def test_a_running_one_lags_by_the_compaction_interval_at_most(tmp_path, uri):
    writer = make(tmp_path / "local", range(95), storage_uri=uri, compaction_every_n_steps=30)
    for _ in range(100):  # a thread copies
        copied = copied_steps(f"{uri}/a", tmp_path / "cache")
        if copied >= 95 - 30 - 10:
            break
        time.sleep(0.1)
    assert copied >= 95 - 30 - 10
    record(writer, range(95, 97))
    writer.close()


def test_a_name_taken_in_the_remote_store_is_not_overwritten(tmp_path, uri):
    make(tmp_path / "one", range(10), storage_uri=uri).close()
    make(tmp_path / "two", range(20), storage_uri=uri).close()
    root = remote.fetch(uri, tmp_path / "cache")
    assert [len(RunReader(root / name).scalars()) for name in ("a", "a-2")] == [10, 20]


def test_resume_goes_on_with_the_same_remote_copy(tmp_path, uri):
    make(tmp_path / "one", range(10), storage_uri=uri).close()
    again = RunWriter.create(config(tmp_path / "one", storage_uri=uri, resume=True), meta={})
    record(again, range(10, 25))
    again.close()
    assert len(RunReader(remote.fetch(f"{uri}/a", tmp_path / "cache")).scalars()) == 25


def test_a_remote_store_that_fails_is_one_line_and_the_local_run_is_whole(tmp_path, uri, monkeypatch):
    writer = make(tmp_path / "local", range(20), storage_uri=uri)

    def refuse(*args, **kwargs):
        raise PermissionError("403\nForbidden")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "put_file", refuse)
    with pytest.raises(StoreError, match=r"cannot be written .PermissionError: 403 Forbidden") as error:
        writer.close()
    assert "\n" not in str(error.value)
    reader = RunReader(writer.path)
    assert len(reader.scalars()) == 20
    assert reader.manifest.closed


def test_an_unknown_scheme_is_a_setting_that_is_wrong(tmp_path):
    with pytest.raises(ConfigError, match="storage_uri = 'nosuch://x'"):
        RunWriter.create(config(tmp_path, storage_uri="nosuch://x"), meta={})


def test_nothing_at_the_uri_is_an_error_that_names_it(tmp_path, uri):
    with pytest.raises(ReadError, match="nothing is there"):
        remote.fetch(uri, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://b/x", True), ("file:///x", True), ("C:\\runs", False), ("./runs", False), ("a://b", False)],
)
def test_a_uri_is_told_from_a_path(text, expected):
    assert remote.is_uri(text) is expected

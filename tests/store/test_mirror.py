"""The copy in a remote store: what it never does to the training."""

import threading
import time
import uuid

import fsspec
import pytest

from store.runs import config, make, record
from trainscope.core.errors import RemoteError
from trainscope.store import mirror, remote
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter

MEMORY = type(fsspec.filesystem("memory"))


@pytest.fixture
def uri():
    yield f"memory://bucket-{uuid.uuid4().hex}/runs"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def hang(monkeypatch):
    """Let every call of a method of the remote store wait until the test ends."""
    free = threading.Event()

    def apply(method):
        def waits(*args, **kwargs):
            free.wait(30)
            raise TimeoutError("gave up")

        monkeypatch.setattr(MEMORY, method, waits)

    yield apply
    free.set()


@pytest.mark.parametrize("method", ["exists", "makedirs", "put_file"])
def test_a_remote_store_that_hangs_never_holds_up_a_step(tmp_path, uri, hang, monkeypatch, method):
    hang(method)
    monkeypatch.setattr(mirror, "PATIENCE_SECONDS", 0.3)
    begun = time.monotonic()
    running = make(tmp_path, range(300), storage_uri=uri, compaction_every_n_steps=10)
    with pytest.raises(RemoteError, match=r"no answer for 0\.3 s, the copy there is not complete; copy .* by hand"):
        running.close()
    assert time.monotonic() - begun < 20
    reader = RunReader(running.path)
    assert reader.manifest.closed
    assert len(reader.scalars()) == 300


def test_a_slow_one_that_gets_on_is_waited_for(tmp_path, uri, monkeypatch):
    monkeypatch.setattr(mirror, "PATIENCE_SECONDS", 1.0)
    original = MEMORY.put_file

    def slow(self, *args, **kwargs):
        time.sleep(0.3)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(MEMORY, "put_file", slow)
    running = make(tmp_path, range(30), storage_uri=uri)
    running.close()  # seven files: longer than the patience in all, never without an answer for that long
    assert len(RunReader(remote.fetch(f"{uri}/a", tmp_path / "cache")).scalars()) == 30


def test_failures_are_reported_once_and_the_copy_is_whole_when_the_store_is_back(tmp_path, uri, monkeypatch):
    original, down = MEMORY.put_file, threading.Event()
    down.set()

    def flaky(self, *args, **kwargs):
        if down.is_set():
            raise PermissionError("403\nForbidden")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(MEMORY, "put_file", flaky)
    reports = []
    wanted = config(tmp_path, storage_uri=uri, compaction_every_n_steps=10)
    running = RunWriter.create(wanted, meta={}, report=reports.append)
    for begin in range(0, 60, 20):
        record(running, range(begin, begin + 20))
        wait_for(lambda: running._mirror._wanted.is_set() is False)
    wait_for(lambda: reports)
    down.clear()
    running.close()
    assert [str(r) for r in reports] == [f"{uri}: cannot be written (PermissionError: 403 Forbidden)"]
    assert len(RunReader(remote.fetch(f"{uri}/a", tmp_path / "cache")).scalars()) == 60


def test_requests_while_it_copies_become_one(tmp_path, uri, monkeypatch):
    entered, free, syncs = threading.Event(), threading.Event(), []

    def sync(self):
        syncs.append(1)
        entered.set()
        free.wait(30)

    monkeypatch.setattr(mirror.Mirror, "_sync", sync)
    one = mirror.Mirror(uri, tmp_path, resumed=False)
    one.request()
    entered.wait(30)
    for _ in range(1000):
        one.request()
    free.set()
    one.close()
    assert len(syncs) <= 3


def test_a_file_that_is_folded_away_while_it_is_copied_is_no_failure(tmp_path, uri, monkeypatch):
    running = make(tmp_path, range(30), storage_uri=uri)
    original = MEMORY.put_file

    def fold_first(self, source, *args, **kwargs):
        if "journal" in source:
            (running.path / "journal").joinpath(source.rpartition("/")[2]).unlink()
        return original(self, source, *args, **kwargs)

    monkeypatch.setattr(MEMORY, "put_file", fold_first)
    running._mirror._sync()
    assert not any("journal" in name for name in running._mirror._seen)
    assert "global.arrow" in running._mirror._seen
    running._lock.release()


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)

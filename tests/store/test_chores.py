"""Work that is spread over training steps: order, failures, and what a reader sees half-way."""

import shutil

import numpy as np
import pytest

from store.runs import NAMES, block, config, make, plain_read, record, value
from trainscope.core.errors import StoreError
from trainscope.store import upkeep
from trainscope.store.chores import Chores
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter


def job(log, name, pieces, *, fails_at=None):
    for piece in range(pieces):
        if piece == fails_at:
            raise StoreError("disk full")
        log.append(f"{name}{piece}")
        yield


def test_jobs_are_done_one_after_the_other_and_a_failed_one_is_given_up():
    log = []
    chores = Chores(lambda: None)
    chores.add(job(log, "a", 2))
    chores.add(job(log, "b", 3, fails_at=1))
    chores.add(job(log, "c", 1))
    with pytest.raises(StoreError):
        chores.finish()
    chores.finish()
    assert log == ["a0", "a1", "b0", "c0"]


def test_one_turn_does_at_least_one_piece_and_asks_for_more_when_nothing_waits():
    log, more = [], [job([], "x", 0)]
    chores = Chores(lambda: more.pop() if more else None)
    chores.add(job(log, "a", 3))
    chores.work(0)
    assert log == ["a0"]
    chores.work(60)
    assert (log, more) == (["a0", "a1", "a2"], [])


@pytest.fixture
def piecemeal(monkeypatch):
    """Let every flush do a single piece of work, as on a machine that is very slow."""

    class Once(Chores):
        def work(self, seconds):
            if not self._waiting and (more := self._idle()) is not None:
                self.add(more)
            if self._waiting:
                self._piece()

    monkeypatch.setattr(upkeep, "Chores", Once)
    monkeypatch.setattr(RunWriter, "work", lambda self, seconds=0: self._upkeep.work(1))


@pytest.mark.parametrize("more", range(0, 60, 7))
def test_a_reader_sees_every_row_once_at_any_stage_of_a_fold(tmp_path, piecemeal, more):
    """And so does a resume after a kill there."""
    running = make(tmp_path, range(60 + more), full_resolution_window=20)
    running.flush()
    copy = shutil.copytree(running.path, tmp_path / "killed" / "a")
    for reader in (RunReader(running.path), RunReader(copy)):
        for j, name in enumerate(NAMES):
            step, got = reader.layer_points(name, "grad_l2_norm")
            assert np.all(np.diff(step) > 0)
            assert got.tolist() == [value(s, j) for s in step.tolist()]
            assert set(range(60 + more - 20, 60 + more)) <= set(step.tolist())
    again = RunWriter.create(config(tmp_path / "killed", full_resolution_window=20, resume=True), meta={})
    record(again, range(60 + more, 100 + more))
    again.close()
    running.close()
    for name in NAMES:
        step = plain_read(again.path / "layers" / f"{name}.arrow").column("step").to_pylist()
        assert step == sorted(set(step))
        assert set(range(80 + more, 100 + more)) <= set(step)


def test_a_rewind_in_the_middle_of_a_fold_and_a_window_finishes_both_first(tmp_path, piecemeal):
    running = make(tmp_path, range(70), full_resolution_window=20)
    running.mark_spike(69, 9.0)
    record(running, range(70, 80))
    record(running, range(75, 90))
    running.close()
    reader = RunReader(running.path)
    assert reader.scalars().column("step").to_pylist() == list(range(90))
    window = plain_read(running.path / "spikes" / "spike_step_69_layers" / "head.bias.arrow")
    assert window.column("step").to_pylist() == list(range(64, 73))
    for j, name in enumerate(NAMES):
        step, got = reader.layer_points(name, "grad_l2_norm")
        assert got.tolist() == [value(s, j) for s in step.tolist()]


def test_the_journal_stays_bounded_where_there_is_no_time_to_fold(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep.Chores, "work", lambda self, seconds: None)
    running = make(tmp_path, range(400), full_resolution_window=20)
    held = list((running.path / "journal").iterdir())
    assert len(held) <= upkeep.MOST_RIPE + 4
    running.close()
    assert list((running.path / "journal").iterdir()) == []


@pytest.mark.slow
def test_more_layers_than_are_turned_at_once_and_more_bytes_than_fit_come_out_the_same(tmp_path, monkeypatch):
    names = tuple(f"layer.{i}" for i in range(300))
    trees = []
    for folder, size in (("one", 1 << 30), ("many", 4096)):
        monkeypatch.setattr("trainscope.store.layers.CHUNK_BYTES", size)
        monkeypatch.setattr("trainscope.store.journal.BATCH_BYTES", size)
        running = RunWriter.create(config(tmp_path / folder, full_resolution_window=20), meta={})
        for step in range(70):
            running.append(step, {"loss": 1.0}, block(step, names))
            if step == 55:
                running.mark_spike(step, 9.0)
        running.close()
        reader = RunReader(running.path)
        assert reader.layers() == names
        trees.append([reader.layer_table(name).to_pylist() for name in names])
        window = plain_read(running.path / "spikes" / "spike_step_55_layers" / "layer.299.arrow")
        assert window.column("grad_l2_norm").to_pylist() == [value(s, 299) for s in range(50, 59)]
    assert trees[0] == trees[1]


def test_a_statistic_that_appears_late_widens_each_file_when_it_gets_its_next_rows(tmp_path):
    running = make(tmp_path, range(60), full_resolution_window=20)
    again = block(60)
    for step in range(60, 120):
        more = block(step)
        running.append(step, {"loss": 1.0}, type(again)(more.names, {**more.columns, "mine": np.full(3, step / 2)}))
    running.close()
    reader = RunReader(running.path)
    for name in NAMES:
        step, got = reader.layer_points(name, "mine")
        assert got.tolist() == [s / 2 for s in step.tolist()]
        assert min(step) >= 60
        step, got = reader.layer_points(name, "grad_l2_norm")
        assert min(step) < 10

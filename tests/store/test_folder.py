import multiprocessing
import resource
import shutil
from pathlib import Path

import pytest

from store.runs import NAMES, config, make, plain_read, record, value
from trainscope.core.errors import StoreError
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter

# Forking is the point here; Arrow has threads, which Python 3.12 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def test_two_runs_of_one_name_get_two_folders(tmp_path):
    paths = []
    for _ in range(3):
        writer = make(tmp_path, range(5))
        writer.close()
        paths.append(writer.path.name)
    assert paths == ["a", "a-2", "a-3"]
    assert len(RunReader(tmp_path / "a").scalars()) == 5


def _claim(root, barrier, found):
    barrier.wait()
    found.put(RunWriter.create(config(Path(root)), meta={}).path.name)


@pytest.mark.slow
def test_processes_that_start_together_get_a_folder_each(tmp_path):
    spawn = multiprocessing.get_context("fork")
    barrier, found = spawn.Barrier(4), spawn.Queue()
    racers = [spawn.Process(target=_claim, args=(str(tmp_path), barrier, found)) for _ in range(4)]
    for racer in racers:
        racer.start()
    names = {found.get(timeout=60) for _ in racers}
    for racer in racers:
        racer.join()
    assert names == {"a", "a-2", "a-3", "a-4"}


def test_ranks_get_a_folder_each(tmp_path):
    assert RunWriter.create(config(tmp_path), meta={}, rank=3).path.name == "a_rank3"
    assert RunWriter.create(config(tmp_path, rank=1), meta={}).path.name == "a_rank1"


def test_a_folder_that_vanishes_is_an_error_of_one_line_and_writing_goes_on_when_it_is_back(tmp_path):
    writer = make(tmp_path, range(10))
    writer.path.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"\.arrow: cannot be written"):
        record(writer, range(10, 25))
    (tmp_path / "elsewhere").rename(writer.path)
    record(writer, range(25, 40))
    writer.close()
    step, _ = RunReader(writer.path).layer_points("head.bias", "grad_l2_norm")
    assert set(range(10)) | set(range(25, 40)) <= set(step.tolist())


def test_a_journal_that_somebody_deleted_costs_its_steps_and_nothing_else(tmp_path):
    writer = make(tmp_path, range(20))
    shutil.rmtree(writer.path / "journal")
    with pytest.raises(StoreError, match=r"\.arrow: cannot be written"):
        record(writer, range(20, 30))
    (writer.path / "journal").mkdir()
    record(writer, range(30, 40))
    writer.close()
    step, _ = RunReader(writer.path).layer_points("head.bias", "grad_l2_norm")
    assert step.tolist() == list(range(30, 40))
    resumed = RunWriter.create(config(tmp_path, resume=True), meta={})  # the lock is free
    assert resumed.next_step == 40
    resumed.close()


def _fill_disk(root, found):
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    writer = RunWriter.create(config(Path(root)), meta={})
    failures = []
    for step in range(400):
        try:
            record(writer, [step])
        except StoreError as error:
            failures.append(str(error))
    try:
        writer.close()
    except StoreError as error:
        failures.append(str(error))
    found.put(failures)


def test_a_full_disk_is_reported_and_leaves_a_readable_run(tmp_path):
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    process = fork.Process(target=_fill_disk, args=(str(tmp_path), found))
    process.start()
    failures = found.get(timeout=60)
    process.join()
    assert failures
    assert all("cannot be written" in failure and "\n" not in failure for failure in failures)
    reader = RunReader(tmp_path / "a")
    assert len(reader.scalars()) >= 50
    assert not reader.is_torn
    for name in NAMES:
        step, got = reader.layer_points(name, "grad_l2_norm")
        assert got.tolist() == [value(s, NAMES.index(name)) for s in step.tolist()]


def test_checkpoints_and_rng_states_have_their_places(tmp_path):
    writer = make(tmp_path, range(1))
    assert writer.rng_path(7) == writer.path / "rng_states" / "step_7.pkl"
    assert writer.checkpoint_path(7) == writer.path / "checkpoints" / "7.pt"
    assert writer.checkpoint_path(7).parent.is_dir()
    writer.close()
    other = RunWriter.create(config(tmp_path, checkpoint_on_spike="ck/at_{step}.bin"), meta={})
    assert other.checkpoint_path(7) == other.path / "ck" / "at_7.bin"
    assert other.checkpoint_path(7).parent.is_dir()


def test_a_fold_that_failed_half_way_is_finished_later_without_a_row_twice(tmp_path):
    writer = make(tmp_path, range(20), full_resolution_window=20)
    blocked = writer.path / "layers" / "head.bias.arrow"
    blocked.mkdir()
    with pytest.raises(StoreError, match=r"head\.bias\.arrow: cannot be written"):
        record(writer, range(20, 60))
    with pytest.raises(StoreError, match=r"head\.bias\.arrow: cannot be written"):
        for _ in range(100):  # a turn does as much as there is time for
            writer.flush()
    blocked.rmdir()
    record(writer, range(60, 80))
    writer.close()
    for name in NAMES:
        step = plain_read(writer.path / "layers" / f"{name}.arrow").column("step").to_pylist()
        assert step == sorted(set(step))
        assert set(range(60, 80)) <= set(step)


def test_a_run_whose_resume_failed_may_be_resumed_again_by_the_same_process(tmp_path):
    writer = make(tmp_path, range(10))
    writer.close()
    shutil.rmtree(writer.path / "journal")
    (writer.path / "journal").write_text("no folder")
    for _ in range(2):
        with pytest.raises(StoreError, match="journal: cannot be written"):
            RunWriter.create(config(tmp_path, resume=True), meta={})

import os
import signal
import time

import numpy as np
import pytest

from store.runs import NAMES, block, check_layers, config, make, plain_read, record, value
from trainscope.core.errors import ConfigError, StoreError
from trainscope.store import folder
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter

# Forking is the point here; Arrow has threads, which Python 3.12 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.mark.parametrize("closed", [True, False])
def test_resume_goes_on_with_the_step_ids(tmp_path, closed):
    writer = make(tmp_path, range(60), full_resolution_window=20)
    if closed:
        writer.close()
    else:
        writer.flush()
        writer._lock.release()  # what the operating system does when a process dies
    again = RunWriter.create(config(tmp_path, full_resolution_window=20, resume=True), meta={})
    assert again.path == writer.path
    assert again.next_step == 60
    record(again, range(60, 90))
    again.close()
    reader = RunReader(again.path)
    assert reader.scalars().column("step").to_pylist() == list(range(90))
    step, got = reader.layer_points("head.bias", "grad_l2_norm")
    assert np.all(np.diff(step) > 0)
    assert got.tolist() == [value(s, 2) for s in step.tolist()]
    assert set(range(70, 90)) <= set(step.tolist())


@pytest.mark.parametrize("closed", [True, False])
def test_resume_from_an_earlier_checkpoint_drops_the_rewound_tail(tmp_path, closed):
    writer = make(tmp_path, range(60))
    writer.mark_spike(59, 9.0)
    if closed:
        writer.close()
    else:
        writer.flush()
        writer._lock.release()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    again.append(40, {"loss": -1.0}, block(40))
    again.append(41, {"loss": -1.0}, block(41))
    again.close()
    reader = RunReader(again.path)
    assert reader.scalars().column("step").to_pylist() == list(range(42))
    assert reader.scalars().column("loss").to_pylist()[40:] == [-1.0, -1.0]
    check_layers(reader, range(42))
    assert reader.manifest.rewinds == [{"step": 40, "last": 59}]
    if closed:
        assert reader.manifest.windows == []
        assert (again.path / "spikes" / "rewound-1" / "spike_step_59.arrow").is_file()


def test_a_step_number_that_goes_back_within_one_process_is_a_rewind(tmp_path):
    writer = make(tmp_path, range(25))
    record(writer, range(12, 30))
    writer.close()
    check_layers(RunReader(writer.path), range(30))


def test_resume_after_a_torn_tail_cuts_it_off(tmp_path):
    writer = make(tmp_path, range(40))
    for path in (writer.path / "global.arrow", *(writer.path / "journal").iterdir()):
        os.truncate(path, path.stat().st_size - 11)
    writer._lock.release()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    assert again.next_step == 30
    record(again, range(30, 50))
    again.close()
    check_layers(RunReader(again.path), range(50))
    assert plain_read(again.path / "global.arrow").num_rows == 50


def test_resume_without_an_earlier_run_starts_one(tmp_path):
    writer = RunWriter.create(config(tmp_path, resume=True), meta={})
    assert (writer.path.name, writer.next_step) == ("a", 0)
    with pytest.raises(ConfigError, match="resume = True: needs run_name"):
        RunWriter.create(config(tmp_path, run_name=None, resume=True), meta={})


def test_resuming_a_run_that_is_still_written_is_refused(tmp_path):
    writer = make(tmp_path, range(5))
    with pytest.raises(StoreError, match="still being written by another process"):
        RunWriter.create(config(tmp_path, resume=True), meta={})
    writer.close()
    RunWriter.create(config(tmp_path, resume=True), meta={}).close()


@pytest.mark.parametrize("closed", [True, False])
def test_a_resumed_run_knows_the_histogram_edges_it_had(tmp_path, closed):
    writer = make(tmp_path, range(60))
    if closed:
        writer.close()
    else:
        writer.flush()
        writer._lock.release()
    again = RunWriter.create(config(tmp_path, resume=True), meta={})
    assert set(again.histogram_edges) == set(NAMES) - {"head.bias"}  # it never had a histogram
    assert again.histogram_edges["embed.weight"].tolist() == [-1, -0.5, 0, 0.5, 1]
    again.close()


def test_closing_saves_what_can_be_saved_when_one_part_fails(tmp_path, monkeypatch):
    writer = make(tmp_path, range(25))
    writer.mark_spike(24, 9.0)
    (writer.path / "spikes").rmdir()
    (writer.path / "spikes").write_text("in the way")
    with pytest.raises(StoreError, match="spike_step_24"):
        writer.close()
    reader = RunReader(writer.path)
    assert reader.manifest.closed
    check_layers(reader, range(25))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_worker_that_outlives_a_killed_training_does_not_block_the_resume(tmp_path):
    read_end, write_end = os.pipe()
    training = os.fork()
    if training == 0:
        make(tmp_path, range(20)).flush()
        worker = os.fork()
        if worker == 0:
            time.sleep(30)
            os._exit(0)
        os.write(write_end, str(worker).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(training, 0)
    worker = int(os.read(read_end, 20))
    try:
        again = RunWriter.create(config(tmp_path, resume=True), meta={})
        assert again.next_step == 20
        again.close()
    finally:
        os.kill(worker, signal.SIGKILL)
        os.close(read_end)
        os.close(write_end)


def test_another_process_cannot_resume_a_run_that_is_written(tmp_path):
    writer = make(tmp_path, range(5))
    child = os.fork()
    if child == 0:
        folder._written_here.clear()
        try:
            RunWriter.create(config(tmp_path, resume=True), meta={})
        except StoreError:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    writer.close()


def test_what_a_killed_session_had_begun_is_gone_after_the_resume_and_files_of_others_are_not(tmp_path):
    writer = make(tmp_path, range(30))
    writer.flush()
    writer._lock.release()
    begun = ["manifest.json", "global.arrow", "layers/embed.weight.arrow", "rng_states/step_7.pkl", "ck/at_7.bin"]
    mine = ["notes.part", "ck/at_last.bin.part", "ck/at_7.bin", "layers/notes.part"]
    for name in (*(f"{name}.part" for name in begun), "spikes/spike_step_7_layers.part/a.arrow", *mine):
        (writer.path / name).parent.mkdir(parents=True, exist_ok=True)
        (writer.path / name).write_bytes(b"half")
    make(tmp_path, range(3)).close()  # another run of the same name is in a folder of its own
    parts = {p.relative_to(writer.path).as_posix() for p in writer.path.rglob("*.part")}
    assert len(parts) == len(begun) + 1 + 3

    template = "ck/at_{step}.bin"
    again = RunWriter.create(config(tmp_path, resume=True, checkpoint_on_spike=template), meta={})
    assert again.next_step == 30
    again.close()
    assert sorted(p.relative_to(writer.path).as_posix() for p in writer.path.rglob("*.part")) == [
        "ck/at_last.bin.part",
        "layers/notes.part",
        "notes.part",
    ]
    assert (writer.path / "ck/at_7.bin").read_bytes() == b"half"


def test_a_checkpoint_that_goes_elsewhere_and_was_not_finished_is_gone_too(tmp_path):
    elsewhere = tmp_path / "disk [2]"
    elsewhere.mkdir()
    fields = {"checkpoint_on_spike": str(elsewhere / "{step}.pt")}
    writer = make(tmp_path / "runs", range(5), **fields)
    writer.flush()
    writer._lock.release()
    for name in ("7.pt.part", "8.pt", "best.pt.part"):
        (elsewhere / name).write_bytes(b"half")
    RunWriter.create(config(tmp_path / "runs", resume=True, **fields), meta={}).close()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["8.pt", "best.pt.part"]

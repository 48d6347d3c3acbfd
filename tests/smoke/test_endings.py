"""However a script ends, the smoke run says so, and never passes what did not train."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trainscope.core.errors import TrainingFailedError
from trainscope.smoke.record import FACTS_FILE

from .conftest import SCRIPTS, Record, Script, numbers, script

pytestmark = pytest.mark.slow
CLI = (sys.executable, "-m", "trainscope", "smoke")


def test_it_ends_cleanly_after_the_wanted_steps(record: Record):
    recorded = record(*script("endings", "none"), steps=4)
    assert recorded.smoke.ended == "steps"
    assert recorded.runs[0].last_step == 3
    assert len(numbers(recorded.output)) == 4
    assert "an ordinary exception" not in recorded.output
    assert recorded.output.endswith("the finally block ran\n")


def test_what_follows_the_last_wanted_step_still_runs(record: Record, plain: Callable[..., str]):
    # The script is ended where the next step would begin, so that it logs and evaluates the last one.
    recorded = record(*script("plain"), steps=6)
    assert numbers(recorded.output) == numbers(plain(script("plain")))


def test_a_script_that_catches_everything_is_ended_all_the_same(record: Record):
    recorded = record(*script("endings", "bare"), steps=2)
    assert "caught everything" in recorded.output
    assert recorded.runs[0].last_step == 1


def test_both_ranks_end_at_the_same_step(record: Record):
    launch = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    recorded = record(*launch, *script("distributed", "ddp")[1:], steps=3)
    assert [run.last_step for run in recorded.runs] == [2, 2]


@pytest.mark.parametrize("name", ["two_optimizers", "closure", "accumulation", "hugging_face"])
def test_every_kind_of_loop_ends_at_the_wanted_step(record: Record, warm_script: Script, name: str):
    recorded = record(*warm_script(name), steps=2)
    assert recorded.smoke.ended == "steps"
    assert recorded.runs[0].last_step == 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("exit", "ended with exit code 3 after 3 of 10000 steps"),
        ("os-exit", "ended with exit code 4 after 3 of 10000 steps"),
        ("raise", "ended with exit code 1 after 3 of 10000 steps"),
    ],
)
def test_a_script_that_fails_is_no_pass_and_shows_its_last_lines(record: Record, how: str, says: str):
    with pytest.raises(TrainingFailedError, match=says) as failure:
        record(*script("endings", how))
    shown = "\n".join(failure.value.tail)
    assert ("the loss is on strike" in shown) == (how == "raise")
    assert "loss 0x" in shown


def test_a_script_that_ends_by_itself_passes(record: Record):
    recorded = record(*script("endings", "exit-0"))
    assert recorded.smoke.ended == "script"
    assert recorded.runs[0].last_step == 2


def test_a_script_that_never_steps_is_no_pass(record: Record):
    with pytest.raises(TrainingFailedError, match="no optimizer step was seen"):
        record(sys.executable, "-c", "import torch; print('nothing to do')")


def test_a_command_that_does_not_exist_is_no_pass(record: Record):
    with pytest.raises(TrainingFailedError, match="cannot be started"):
        record("no-such-program-at-all")


def test_a_script_that_is_no_program_is_said_to_need_python(record: Record):
    name = str(SCRIPTS / "plain.py")
    with pytest.raises(TrainingFailedError, match=f"cannot be started .*; start it with python {re.escape(name)}"):
        record(name)


def test_a_script_out_of_time_is_ended_with_all_its_children(record: Record):
    began = time.monotonic()
    with pytest.raises(TrainingFailedError, match=r"not done in 25 s, ended after 3 of"):
        record("sh", "-c", f"{sys.executable} {SCRIPTS / 'endings.py'} sleep; echo never", timeout=25.0)
    assert time.monotonic() - began < 60


def test_a_process_in_a_session_of_its_own_is_ended_too(record: Record):
    sleeps = "import time; time.sleep(600)"
    code = (
        "import subprocess, sys, time\n"
        f"print(subprocess.Popen([sys.executable, '-c', {sleeps!r}], start_new_session=True).pid, flush=True)\n"
        "time.sleep(600)"
    )
    with pytest.raises(TrainingFailedError) as failure:
        record(sys.executable, "-c", code, timeout=3.0)
    state = Path(f"/proc/{int(failure.value.tail[0])}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_thread_that_keeps_the_script_alive_is_ended_once_all_is_recorded(
    record: Record, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trainscope.smoke.command.LINGER_SECONDS", 2.0)
    recorded = record(*script("endings", "thread"), steps=2)
    assert recorded.smoke.ended == "steps"
    assert recorded.runs[0].last_step == 1


def test_of_a_process_that_becomes_another_the_longer_training_counts(record: Record):
    recorded = record(*script("endings", "exec"))
    assert recorded.runs[0].last_step == 5
    assert recorded.runs[0].get("smoke/repeated_batch").value.max() == 0


def test_ctrl_c_ends_the_script_and_leaves_no_run(tmp_path: Path):
    command = (*CLI, "--out", str(tmp_path / "out"), "--", *script("endings", "sleep"))
    # A shell starts background jobs deaf to Ctrl-C; nobody who presses it would.
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    log = tmp_path / "out" / "output.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("loss ") == 3):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "the finally block ran" in log.read_text()
    assert not (tmp_path / "out" / "smoke").exists()


def test_the_command_line_says_what_was_recorded_and_exits_with_0_or_4(tmp_path: Path):
    out = str(tmp_path / "out")
    done = subprocess.run(
        (*CLI, "--steps", "2", "--out", out, "--", *script("plain")), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"recorded 2 steps in \d+ s: .*smoke\n", done.stderr)
    assert (tmp_path / "out" / "smoke" / FACTS_FILE).is_file()
    done = subprocess.run(
        (*CLI, "--out", out, "--", *script("endings", "raise")), capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "  | ValueError: the loss is on strike" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    # The run of before is still there: nothing half-written takes its place.
    assert (tmp_path / "out" / "smoke" / FACTS_FILE).is_file()


def test_an_earlier_run_is_replaced_and_nothing_else(record: Record, warm_script: Script, tmp_path: Path):
    record(*warm_script("plain"), steps=2)
    keep = tmp_path / "recorded" / "smoke-notes"
    keep.mkdir()
    recorded = record(*warm_script("plain"), steps=3)
    assert recorded.smoke.paths[0].name == "smoke"
    assert recorded.runs[0].last_step == 2
    assert keep.is_dir()
    assert not list((tmp_path / "recorded").glob(".smoke*"))


def test_a_seed_seeds_what_the_script_does_not(record: Record):
    code = (
        "import os, random, torch\n"
        "print(torch.rand(1).item(), random.random(), hash('x'), os.environ['TRAINSCOPE_SEED'])\n"
        "p = torch.nn.Parameter(torch.ones(1)); o = torch.optim.SGD([p], lr=0.1); p.sum().backward(); o.step()"
    )
    outputs = [record(sys.executable, "-c", code, seed=seed).output for seed in (7, 7, 8)]
    assert outputs[0] == outputs[1] != outputs[2]
    assert outputs[0].endswith(" 7\n")


def test_the_environment_of_the_caller_is_left_alone(record: Record, warm_script: Script):
    before = dict(os.environ)
    record(*warm_script("plain"), steps=1)
    assert dict(os.environ) == before

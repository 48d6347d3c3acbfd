from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

FAST = ["--interval", "0.05", "--idle", "0.4"]


@pytest.mark.parametrize(
    ("log", "options", "code"),
    [
        ("healthy.csv", [], 0),
        ("nan.csv", [], 1),
        ("nan.csv", ["--fail-on", "never"], 0),
        ("scores.csv", [], 2),
        ("absent.csv", [], 3),
        ("empty.csv", [], 3),
        ("binary.csv", [], 2),
    ],
)
def test_a_watch_ends_with_the_exit_code_of_the_gate(cli, logs: Path, log, options, code):
    result = cli("watch", log, *FAST, *options)
    assert result.code == code
    assert result.err.count("\n") == (1 if code in {2, 3} else 0)


def test_each_finding_is_told_once_however_often_the_log_grows(cli, logs: Path):
    lines = (logs / "nan.csv").read_text().splitlines(keepends=True)
    growing = logs / "growing.csv"
    growing.write_text("".join(lines[:20]))

    def write() -> None:
        for start in range(20, len(lines), 8):
            time.sleep(0.12)
            with growing.open("a") as file:
                file.write("".join(lines[start : start + 8]))

    writer = threading.Thread(target=write)
    writer.start()
    result = cli("watch", "growing.csv", "--interval", "0.05", "--idle", "1.0", "--select", "non_finite")
    writer.join()
    assert result.code == 1
    # Once as a warning, and once more when it has become an error.
    assert 1 <= result.out.count("[non_finite]") <= 2
    assert result.out.splitlines()[-1].startswith("FAIL  ")


@pytest.mark.parametrize(
    ("path", "reason"),
    [("-", "only files and folders can be watched"), ("*.csv", "a pattern cannot be watched"), ("pipe", "only files")],
)
def test_what_cannot_grow_is_refused_at_once(cli, logs: Path, path, reason):
    os.mkfifo(logs / "pipe")
    began = time.monotonic()
    result = cli("watch", path, "--idle", "60")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {path}: {reason}")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("option", ["--interval", "--idle"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "-1", "soon"])
def test_a_time_nobody_can_wait_for_is_refused(cli, logs: Path, option, value):
    result = cli("watch", "healthy.csv", option, value)
    assert result.code == 2
    assert result.err.startswith(f"error: Invalid value for '{option}'")
    assert result.err.count("\n") == 1


def test_every_run_of_a_file_is_judged(cli, logs: Path):
    bad = (logs / "nan.csv").read_text()
    good = (logs / "healthy.csv").read_text().partition("\n")[2]
    (logs / "two.csv").write_text(bad + good)
    assert cli("analyze", "two.csv").code == 1
    result = cli("watch", "two.csv", *FAST)
    assert result.code == 1
    assert result.out.splitlines()[0] == "two#1"
    assert "[non_finite]" in result.out


def test_a_last_line_without_an_end_is_judged(cli, logs: Path):
    healthy = (logs / "healthy.csv").read_text()
    (logs / "cut.csv").write_text(healthy + "60,nan\n61,nan\n62,nan")
    result = cli("watch", "cut.csv", *FAST, "--select", "non_finite")
    assert result.code == cli("analyze", "cut.csv", "--select", "non_finite").code == 1
    assert "62" in result.out


@pytest.mark.parametrize("rotated", [True, False])
def test_an_error_that_was_told_decides_even_if_the_log_is_replaced(cli, logs: Path, rotated):
    growing = logs / "growing.csv"
    growing.write_text((logs / "nan.csv").read_text())

    def replace() -> None:
        time.sleep(0.6)
        if rotated:
            growing.rename(logs / "growing.csv.1")
        growing.write_text((logs / "healthy.csv").read_text())

    writer = threading.Thread(target=replace)
    writer.start()
    result = cli("watch", "growing.csv", "--interval", "0.05", "--idle", "1.5")
    writer.join()
    assert "[non_finite]" in result.out
    assert result.code == 1
    assert result.out.splitlines()[-1].endswith("told before the log changed")


def test_what_is_expected_of_a_whole_run_is_judged_when_it_has_ended(cli, logs: Path):
    lines = (logs / "healthy.csv").read_text().splitlines(keepends=True)
    growing = logs / "growing.csv"
    growing.write_text("".join(lines[:20]))
    (logs / "trainscope.toml").write_text('expect = ["train/loss at step 59 <= 2"]\n')

    def write() -> None:
        time.sleep(0.4)
        with growing.open("a") as file:
            file.write("".join(lines[20:]))

    writer = threading.Thread(target=write)
    writer.start()
    result = cli("watch", "growing.csv", "--interval", "0.05", "--idle", "1.0", "--select", "non_finite")
    writer.join()
    assert (result.code, "[expectation]" in result.out) == (0, False)
    (logs / "trainscope.toml").write_text('expect = ["train/loss at step 59 <= 1"]\n')
    result = cli("watch", "growing.csv", *FAST)
    assert (result.code, result.out.count("[expectation]")) == (1, 1)


@pytest.mark.slow
def test_an_interrupted_watch_ends_with_the_exit_code_of_the_gate(logs: Path):
    command = [
        sys.executable,
        "-u",
        "-m",
        "trainscope",
        "watch",
        "nan.csv",
        "--interval",
        "0.1",
        "--idle",
        "60",
    ]
    with subprocess.Popen(
        command, cwd=logs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert b"non_finite" in first
    assert out.splitlines()[-1].startswith(b"FAIL")
    assert (process.returncode, err) == (1, b"")

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
        out, err = process.communicate(timeout=20)
    assert b"non_finite" in first
    assert out.splitlines()[-1].startswith(b"FAIL")
    assert (process.returncode, err) == (1, b"")

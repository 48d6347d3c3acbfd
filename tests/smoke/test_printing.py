"""What a command prints is kept, whatever it prints and whoever else holds its pipe."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainscope.smoke.printing import LONGEST, Printing


def printed(code: str, tmp_path: Path) -> tuple[bytes, tuple[str, ...]]:
    path = tmp_path / "output.log"
    with path.open("wb", buffering=0) as file:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout is not None
        printing = Printing(process.stdout, file)
        process.wait()
        tail = printing.finish()
    return path.read_bytes(), tail


def test_lines_are_copied_and_the_last_are_kept(tmp_path: Path):
    text, tail = printed("for i in range(30): print('line', i)\nprint('no end', end='')", tmp_path)
    assert text.splitlines()[0] == b"line 0"
    assert len(tail) == 20
    assert tail[-2:] == ("line 29", "no end")


def test_of_a_progress_bar_the_last_state_is_kept(tmp_path: Path):
    text, tail = printed("import sys\nfor i in range(9): sys.stdout.write(f'\\r{i} %')\nprint('\\r9 %')", tmp_path)
    assert text == b"9 %\n"
    assert tail == ("9 %",)


def test_bytes_that_are_no_text_and_lines_without_end_are_copied(tmp_path: Path):
    text, tail = printed("import sys\nsys.stdout.buffer.write(b'\\xff\\x00\\x1b[2J' * 50_000)", tmp_path)
    assert text == b"\xff\x00\x1b[2J" * 50_000
    assert len(tail) > 1  # in pieces
    assert max(map(len, tail)) < 2 * LONGEST


@pytest.mark.slow
def test_a_process_that_is_left_behind_and_holds_the_pipe_is_not_waited_for(tmp_path: Path):
    code = (
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'], start_new_session=True)\n"
        "print('done', left.pid)"
    )
    began = time.monotonic()
    _, tail = printed(code, tmp_path)
    assert time.monotonic() - began < 20
    word, pid = tail[-1].split()
    assert word == "done"
    subprocess.run(["kill", pid], check=False)

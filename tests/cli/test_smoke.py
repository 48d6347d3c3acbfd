from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.cli import smoke as command
from trainscope.smoke.run import Smoke


def finished(*paths: str) -> Smoke:
    return Smoke(tuple(map(Path, paths)), 200, "steps", 3.0, ())


def test_a_smoke_run_ends_with_what_to_do_next():
    said = command.next_command(finished("my out/smoke"), Path("my out"))
    assert said == "next: trainscope analyze 'my out'   or keep it:   trainscope baseline save 'my out'"


def test_of_several_ranks_the_first_is_the_one_to_keep():
    said = command.next_command(finished("out/smoke_rank0", "out/smoke_rank1"), Path("out"))
    assert said.endswith("trainscope baseline save out/smoke_rank0")


def test_progress_is_told_only_when_the_number_moved(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(command, "LINES_EVERY", 0.0)
    lines = command._Lines()
    for done in (0, 0, 3, 3, 5):
        lines(done, 200)
    assert capsys.readouterr().err == "step 3 of 200\nstep 5 of 200\n"


@pytest.mark.parametrize("command", ["smoke", "ci"])
def test_an_empty_command_is_one_line(cli, command: str, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = cli(command, "--", "")
    assert result.code == 2
    assert result.err.strip().splitlines() == ["error: the command is empty: its first word must be a program"]

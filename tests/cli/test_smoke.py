from __future__ import annotations

import sys
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


@pytest.mark.parametrize("name", ["smoke", "smoke_rank1"])
@pytest.mark.parametrize("command", ["smoke", "ci"])
def test_a_file_in_the_way_of_the_recording_is_said_before_the_training_and_stays(cli, command, name, tmp_path):
    ran, notes = tmp_path / "ran", tmp_path / "out" / name / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    result = cli(command, "--out", str(tmp_path / "out"), "--", sys.executable, "-c", f"open({str(ran)!r}, 'w')")
    assert (result.code, result.out) == (2, "")
    assert f"{name}: not a recorded run, and in the way of one; move it, or name another --out" in result.err
    assert (notes.read_text(), ran.exists()) == ("mine", False)


def test_an_empty_folder_is_not_in_the_way(cli, tmp_path):
    (tmp_path / "out" / "smoke").mkdir(parents=True)
    result = cli("smoke", "--out", str(tmp_path / "out"), "--", sys.executable, "-c", "print(1)")
    assert "no optimizer step was seen" in result.err

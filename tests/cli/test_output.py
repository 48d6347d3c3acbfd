from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

TRAINSCOPE = [sys.executable, "-m", "trainscope"]


def test_a_pipe_is_written_into_and_stays_a_pipe(cli, logs: Path):
    pipe = logs / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    result = cli("analyze", "nan.csv", "--output", "json", "--out", str(pipe))
    reader.join(timeout=20)
    assert result.code == 1
    assert json.loads(got[0])["verdict"]["status"] == "fail"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_symbolic_link_stays_and_the_file_behind_it_is_replaced(cli, logs: Path):
    (logs / "real").mkdir()
    target = logs / "real" / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    (logs / "latest.json").symlink_to(target)
    assert cli("analyze", "healthy.csv", "--output", "json", "--out", "latest.json").code == 0
    assert (logs / "latest.json").is_symlink()
    assert json.loads(target.read_text())["verdict"]["status"] == "pass"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(cli, logs: Path):
    (logs / "link").symlink_to(logs / "new.txt")
    assert cli("analyze", "healthy.csv", "--out", "link").code == 0
    assert (logs / "link").is_symlink()
    assert "PASS" in (logs / "new.txt").read_text()


def test_a_link_that_leads_nowhere_gives_one_line(cli, logs: Path):
    (logs / "a").symlink_to("b")
    (logs / "b").symlink_to("a")
    result = cli("analyze", "healthy.csv", "--out", "a")
    assert result.code == 2
    assert result.err.startswith("error: --out a: cannot be written (")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("out", ["healthy.csv", "./healthy.csv", "link.csv", "hard.csv"])
def test_a_log_is_never_written_over_whatever_it_is_called(cli, logs: Path, out):
    before = (logs / "healthy.csv").read_bytes()
    (logs / "link.csv").symlink_to("healthy.csv")
    (logs / "hard.csv").hardlink_to(logs / "healthy.csv")
    for paths in (["healthy.csv"], ["."], ["*.csv"]):
        result = cli("analyze", *paths, "--out", out)
        assert result.code == 2
        assert result.err == f"error: --out {Path(out)}: is one of the logs to judge; name another file\n"
    assert (logs / "healthy.csv").read_bytes() == before


def test_a_file_of_a_runs_folder_is_never_written_over(cli, logs: Path):
    state = logs / "run" / "checkpoint-60" / "trainer_state.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"log_history": [{"step": i, "loss": 3 - i / 40} for i in range(60)]}))
    before = state.read_bytes()
    assert cli("analyze", "run", "--out", str(state)).code == 2
    assert state.read_bytes() == before


def test_the_settings_file_is_never_written_over(cli, logs: Path):
    (logs / "trainscope.toml").write_text('fail_on = "error"\n')
    result = cli("analyze", "healthy.csv", "--out", "trainscope.toml")
    assert result.code == 2
    assert "is the settings file" in result.err
    (logs / "other.toml").write_text('fail_on = "error"\n')
    assert cli("analyze", "healthy.csv", "--config", "other.toml", "--out", "other.toml").code == 2
    assert (logs / "other.toml").read_text() == 'fail_on = "error"\n'


def test_a_write_protected_file_is_refused(cli, logs: Path):
    report = logs / "report.txt"
    report.write_text("old")
    report.chmod(0o444)
    result = cli("analyze", "healthy.csv", "--out", "report.txt")
    assert (result.code, result.err) == (2, "error: --out report.txt: is write-protected\n")
    assert report.read_text() == "old"


def test_a_name_that_is_too_long_gives_one_short_line(cli, logs: Path):
    result = cli("analyze", "healthy.csv", "--out", "x" * 5000)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert len(result.err) < 1000


def test_a_dash_is_standard_output(cli, logs: Path):
    direct = cli("analyze", "nan.csv", "--output", "json")
    assert cli("analyze", "nan.csv", "--output", "json", "--out", "-") == direct
    assert not (logs / "-").exists()


@pytest.mark.slow
def test_the_file_that_standard_output_goes_to_is_written_once(logs: Path):
    report = logs / "report.json"
    with report.open("w") as file:
        command = [*TRAINSCOPE, "analyze", "healthy.csv", "--output", "json", "--out", "report.json"]
        assert subprocess.run(command, cwd=logs, stdout=file, check=False).returncode == 0
    assert json.loads(report.read_text())["verdict"]["status"] == "pass"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TRAINSCOPE": f"{sys.executable} -m trainscope"}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_leaves_the_gates_code(logs: Path, closed):
    for log, code in (("healthy.csv", 0), ("nan.csv", 1), ("binary.csv", 2), ("empty.csv", 3)):
        done = shell(f"$TRAINSCOPE analyze {log} {closed}", logs)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert shell(f"$TRAINSCOPE watch nan.csv --idle 0.2 --interval 0.1 {closed}", logs).returncode == 1
    assert shell(f"$TRAINSCOPE --help {closed}", logs).returncode == 0


@pytest.mark.slow
def test_a_full_disk_is_told_and_never_passes(logs: Path):
    (logs / "full").write_bytes(b"x" * 4096)
    for command, code in (("analyze healthy.csv", 2), ("analyze nan.csv", 1), ("--help", 2), ("explain spikes", 2)):
        # Nothing may be written beyond the first four blocks of a file.
        done = shell(f"trap '' XFSZ; ulimit -f 4; $TRAINSCOPE {command} >> full", logs)
        assert done.returncode == code, (command, done.stderr)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert done.stderr.startswith("error: standard output")
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--help", "--version", "analyze --help", "explain spikes", "detectors"])
def test_a_reader_that_goes_away_leaves_the_code(logs: Path, option):
    done = shell(f"set -o pipefail; $TRAINSCOPE {option} | true", logs)
    assert (done.returncode, done.stderr) == (0, "")


WRITERS = (
    ("report", "--run", "healthy.csv"),
    ("report", "--runs", "healthy.csv"),
    ("report", "--run", "healthy.csv", "--diff", "1:5"),
    ("compare", "healthy.csv", "nan.csv"),
    ("compare", "nan.csv", "healthy.csv"),
    ("baseline", "save", "healthy.csv"),
    ("replay", "--run", "healthy.csv"),
)


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
@pytest.mark.parametrize("out", ["healthy.csv", "link.csv", "hard.csv"])
def test_no_command_writes_over_the_log_that_it_reads(cli, logs: Path, command, out):
    before = (logs / "healthy.csv").read_bytes()
    (logs / "link.csv").symlink_to("healthy.csv")
    (logs / "hard.csv").hardlink_to(logs / "healthy.csv")
    result = cli(*command, "--out", out)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"error: --out {out}: is ")
    assert (logs / "healthy.csv").read_bytes() == before
    assert (logs / "link.csv").is_symlink()


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
def test_no_command_writes_over_its_settings(cli, logs: Path, command):
    (logs / "trainscope.toml").write_text('fail_on = "error"\n')
    result = cli(*command, "--out", "trainscope.toml")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert (logs / "trainscope.toml").read_text() == 'fail_on = "error"\n'


def test_a_baseline_takes_the_place_of_a_baseline_only(cli, logs: Path):
    (logs / "train.py").write_text("print()\n")
    result = cli("baseline", "save", "healthy.csv", "--out", "train.py")
    assert result.code == 2
    assert result.err == "error: --out train.py: is there and is no baseline; name another file\n"
    assert (logs / "train.py").read_text() == "print()\n"
    for log in ("healthy.csv", "nan.csv"):
        assert cli("baseline", "save", log).code == 0


def test_a_comparison_goes_to_standard_output_for_a_dash(cli, logs: Path):
    direct = cli("compare", "healthy.csv", "nan.csv", "--output", "json")
    assert cli("compare", "healthy.csv", "nan.csv", "--output", "json", "--out", "-") == direct
    assert not (logs / "-").exists()


def test_a_name_never_reaches_the_terminal_as_it_is(cli, logs: Path):
    hostile = "\x1b[31mred\u202e"
    (logs / f"{hostile}.csv").write_bytes((logs / "healthy.csv").read_bytes())
    for command in (
        ("baseline", "save", f"{hostile}.csv", "--out", f"{hostile}.arrow"),
        ("compare", "healthy.csv", f"{hostile}.csv", "--out", f"{hostile}.txt"),
        ("replay", "--checkpoint", hostile, "--skip-batches", "1", "--out", f"{hostile}.json"),
    ):
        result = cli(*command)
        assert result.code == 0, result.err
        assert "\x1b" not in result.out + result.err
        assert "\u202e" not in result.out + result.err
        assert "\\x1b[31mred" in result.out + result.err


def test_what_a_killed_report_had_begun_is_gone_after_the_next(cli, logs: Path):
    old, settings = logs / ".trainscope.ab12cd34.part", logs / ".trainscope.toml"
    for path in (old, settings):
        path.write_text("")
        os.utime(path, (time.time() - 3600,) * 2)
    assert cli("analyze", "healthy.csv", "--output", "json", "--out", "report.json").code == 0
    assert not old.exists()
    assert settings.exists()
    assert json.loads((logs / "report.json").read_text())["verdict"]["status"] == "pass"

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from .conftest import rows


def test_a_pipe_is_read_whole_and_once(cli, logs: Path):
    lines = rows([3 - i / 20000 if i < 30000 else "nan" for i in range(40000)])
    assert len(lines) > 5 * 64 * 1024
    (logs / "plain.csv").write_text(lines)
    os.mkfifo(logs / "pipe")
    writer = threading.Thread(target=(logs / "pipe").write_text, args=(lines,))
    writer.start()
    result = cli("analyze", "pipe", "--output", "json")
    writer.join(timeout=20)
    (run,) = json.loads(result.out)["runs"]
    (whole,) = json.loads(cli("analyze", "plain.csv", "--output", "json").out)["runs"]
    assert run["steps"] == whole["steps"] == {"first": 0, "last": 39999, "count": 40000}
    assert run["metrics"] == whole["metrics"]
    assert result.code == 1


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_end_is_refused(cli, device):
    result = cli("analyze", device)
    assert result.code == 2
    assert result.err == f"error: {device}: is a device, not a log; name a file, a folder or a pipe\n"


@pytest.mark.parametrize("missing", ["*.parquet", "hollow"])
def test_a_pattern_or_folder_without_logs_stops_no_other(cli, logs: Path, missing):
    (logs / "hollow").mkdir()
    for log, code in (("healthy.csv", 2), ("nan.csv", 1)):
        result = cli("analyze", missing, log, "--output", "json")
        document = json.loads(result.out)
        assert result.code == code
        assert [r["source"] for r in document["runs"]] == [log]
        assert [(e["kind"], e["source"]) for e in document["errors"]] == [("no_data", missing)]
        assert result.err.startswith(f"error: {missing}: no ")
        assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["healthy.csv", "./healthy.csv"], "healthy.csv"),
        (["./healthy.csv", "healthy.csv"], "./healthy.csv"),
        (["healthy.csv", "link.csv"], "healthy.csv"),
        (["sub/../healthy.csv", "healthy.csv"], "sub/../healthy.csv"),
    ],
)
def test_one_file_under_several_spellings_is_one_log(cli, logs: Path, paths, kept):
    (logs / "link.csv").symlink_to("healthy.csv")
    (logs / "sub").mkdir()
    document = json.loads(cli("analyze", *paths, "--output", "json").out)
    assert [r["source"] for r in document["runs"]] == [kept]


def test_a_name_that_is_too_long_gives_one_short_line(cli):
    result = cli("analyze", "x" * 5000)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert len(result.err) < 1000
    assert "file name too long" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may read every file")
@pytest.mark.parametrize("closed", ["folder", "healthy.csv"])
def test_what_is_closed_to_us_is_told(cli, logs: Path, closed):
    (logs / "folder").mkdir()
    (logs / closed).chmod(0)
    result = cli("analyze", closed)
    (logs / closed).chmod(0o700)
    assert (result.code, result.err) == (2, f"error: {closed}: permission denied\n")


@pytest.mark.parametrize(
    "options",
    [["--select", "grad_norm"], ["--select", "expectation"], ["--ignore", "grad_norm", "--select", "grad_norm"]],
)
@pytest.mark.parametrize("command", ["analyze", "watch"])
def test_a_run_that_no_detector_judged_never_passes(cli, logs: Path, command, options):
    fast = ["--interval", "0.05", "--idle", "0.1"] if command == "watch" else ["--output", "json"]
    result = cli(command, "healthy.csv", *options, *fast)
    assert result.code == 2
    assert result.err.startswith("error: healthy.csv: no detector judged this run: ")
    assert result.err.count("\n") == 1
    if command == "analyze":
        document = json.loads(result.out)
        assert document["verdict"]["status"] == "error"
        assert [e["kind"] for e in document["errors"]] == ["not_judgeable"]


def test_the_line_names_what_was_skipped(cli, logs: Path):
    result = cli("analyze", "healthy.csv", "--select", "grad_norm,overfitting", "--quiet")
    assert result.err.startswith(
        "error: healthy.csv: no detector judged this run: all of them were skipped (overfitting: "
    )
    assert "grad_norm: " in result.err


@pytest.mark.parametrize("output", ["terminal", "markdown", "html"])
def test_no_output_calls_an_unjudged_run_clean(cli, logs: Path, output):
    out = cli("analyze", "healthy.csv", "--select", "grad_norm", "--output", output).out
    assert "no detector judged this run" in out
    assert "no findings by" not in out
    assert "chip good" not in out


def test_one_finite_point_is_judged_by_what_can_judge_it(cli, logs: Path):
    (logs / "one.jsonl").write_text('{"step": 1, "loss": 2.5}\n')
    assert cli("analyze", "one.jsonl").code == 0
    assert cli("analyze", "one.jsonl", "--select", "plateau").code == 2

from __future__ import annotations

import json
import stat
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from trainscope.report.schema import schema_text

OUTPUTS = ["terminal", "json", "markdown", "html", "junit"]


@pytest.mark.parametrize(
    ("paths", "options", "code"),
    [
        (["healthy.csv"], [], 0),
        (["nan.csv"], [], 1),
        (["nan.csv"], ["--fail-on", "error"], 1),
        (["nan.csv"], ["--fail-on", "never"], 0),
        (["nan.csv"], ["--ignore", "non_finite", "--fail-on", "error"], 0),
        (["healthy.csv", "nan.csv"], [], 1),
        (["binary.csv"], [], 2),
        (["absent.csv"], [], 2),
        (["scores.csv"], [], 2),
        (["healthy.csv", "binary.csv"], [], 2),
        (["healthy.csv", "scores.csv"], [], 2),
        (["healthy.csv", "empty.csv"], [], 2),
        (["healthy.csv", "binary.csv"], ["--fail-on", "never"], 2),
        (["nan.csv", "binary.csv"], [], 1),
        (["empty.csv"], [], 3),
        (["*.parquet"], [], 3),
        (["healthy.csv"], ["--fail-on", "fatal"], 2),
        (["healthy.csv"], ["--select", "no_such"], 2),
        (["healthy.csv"], ["--format", "no_such"], 2),
        (["healthy.csv"], ["--config", "absent.toml"], 2),
        (["healthy.csv"], ["--out", "absent/report.txt"], 2),
        ([], [], 2),
    ],
)
def test_every_outcome_has_its_exit_code(cli, logs: Path, paths, options, code):
    assert cli("analyze", *paths, *options).code == code


@pytest.mark.parametrize("path", ["binary.csv", "absent.csv", "scores.csv", "empty.csv"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_single_log_that_cannot_be_judged_gives_one_line_and_nothing_else(cli, logs: Path, path, output):
    result = cli("analyze", path, "--output", output)
    assert result.out == ""
    assert result.err.startswith(f"error: {path}")
    assert result.err.count("\n") == 1


def test_the_readable_logs_are_reported_beside_an_unreadable_one(cli, logs: Path):
    result = cli("analyze", "healthy.csv", "binary.csv", "nan.csv", "--output", "json")
    document = json.loads(result.out)
    assert [r["name"] for r in document["runs"]] == ["healthy", "nan"]
    assert [e["source"] for e in document["errors"]] == ["binary.csv"]
    assert result.err.count("\n") == 1
    assert result.err.startswith("error: binary.csv: ")


def test_the_line_names_the_path_as_it_was_given(cli, logs: Path):
    absolute = str(logs / "binary.csv")
    assert cli("analyze", "healthy.csv", absolute, "--output", "json").err.startswith(f"error: {absolute}: ")


def test_a_folder_and_a_glob_are_all_their_logs(cli, logs: Path):
    for name in ("binary.csv", "empty.csv", "scores.csv"):
        (logs / name).unlink()
    for path in (".", "*.csv"):
        document = json.loads(cli("analyze", path, "--output", "json").out)
        assert [r["name"] for r in document["runs"]] == ["healthy", "nan"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_reports_every_run(cli, logs: Path, output):
    result = cli("analyze", "healthy.csv", "nan.csv", "--output", output)
    assert "healthy" in result.out
    assert "nan" in result.out
    assert result.err == ""
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--quiet"],
        ["--no-color"],
        ["--fail-on", "never"],
        ["--select", "non_finite,spikes", "--ignore", "spikes"],
        ["--format", "csv"],
    ],
)
def test_json_on_standard_output_is_valid_with_any_options(cli, logs: Path, options):
    result = cli("analyze", "healthy.csv", "nan.csv", "binary.csv", "--output", "json", *options)
    jsonschema.validate(json.loads(result.out), json.loads(schema_text()))


def test_junit_is_valid_xml(cli, logs: Path):
    root = ET.fromstring(cli("analyze", "nan.csv", "--output", "junit").out)
    assert root.get("failures") != "0"


def test_quiet_leaves_only_the_exit_code(cli, logs: Path):
    result = cli("analyze", "nan.csv", "--quiet")
    assert (result.code, result.out, result.err) == (1, "", "")


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_report_in_a_file_leaves_one_line_on_the_terminal(cli, logs: Path, output):
    direct = cli("analyze", "nan.csv", "--output", output).out
    result = cli("analyze", "nan.csv", "--output", output, "--out", "report.out")
    assert (logs / "report.out").read_text(encoding="utf-8") == direct
    assert result.out.startswith("FAIL  ")
    assert result.out.endswith("report.out\n")
    assert result.out.count("\n") == 1


def test_a_file_is_replaced_whole_and_nothing_else_is_left(cli, logs: Path):
    (logs / "out").mkdir()
    target = logs / "out" / "report.json"
    target.write_text("x" * 1_000_000)
    assert cli("analyze", "healthy.csv", "--output", "json", "--out", str(target)).code == 0
    json.loads(target.read_text())
    assert [p.name for p in (logs / "out").iterdir()] == ["report.json"]


def test_a_new_file_has_the_mode_of_any_new_file(cli, logs: Path):
    (logs / "reference").touch()
    cli("analyze", "healthy.csv", "--out", "report.txt")
    assert stat.S_IMODE((logs / "report.txt").stat().st_mode) == stat.S_IMODE((logs / "reference").stat().st_mode)


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("absent/report.txt", "there is no folder 'absent'; create it first"),
        (".", "is a folder; name a file in it"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_any_work(cli, logs: Path, out, reason):
    result = cli("analyze", "does-not-exist.csv", "--out", out)
    assert result.code == 2
    assert result.err == f"error: --out {out}: {reason}\n"


def test_a_failed_run_leaves_the_old_file_as_it_was(cli, logs: Path):
    (logs / "report.txt").write_text("old")
    assert cli("analyze", "binary.csv", "--out", "report.txt").code == 2
    assert (logs / "report.txt").read_text() == "old"


def test_the_settings_file_is_found_and_the_command_line_wins(cli, logs: Path):
    (logs / "trainscope.toml").write_text('fail_on = "never"\n')
    assert cli("analyze", "nan.csv").code == 0
    assert cli("analyze", "nan.csv", "--fail-on", "warning").code == 1
    (logs / "other.toml").write_text('select = ["spikes"]\n')
    assert cli("analyze", "nan.csv", "--config", "other.toml", "--select", "non_finite").code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fail_onn = 'never'", "trainscope.toml: unknown key 'fail_onn'; did you mean 'fail_on'?"),
        ("fail_on = ", "trainscope.toml: not valid TOML"),
        ("[detectors.non_finit]", "no detector is called 'non_finit'; did you mean 'non_finite'?"),
    ],
)
def test_a_wrong_settings_file_gives_one_line(cli, logs: Path, text, message):
    (logs / "trainscope.toml").write_text(text)
    result = cli("analyze", "healthy.csv")
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_select_and_ignore_take_repeats_and_commas(cli, logs: Path):
    def judged(*options: str) -> list[str]:
        (run,) = json.loads(cli("analyze", "healthy.csv", "--output", "json", *options).out)["runs"]
        return sorted(run["judged"] + [s["detector"] for s in run["skipped"]])

    assert judged("--select", "non_finite", "--select", "spikes") == ["non_finite", "spikes"]
    assert judged("--select", "non_finite, spikes") == ["non_finite", "spikes"]
    assert judged("--select", "non_finite,spikes", "--ignore", "spikes") == ["non_finite"]


def test_a_hostile_file_name_cannot_colour_the_terminal(cli, logs: Path):
    name = "\x1b[31mred\n.csv"
    (logs / name).write_bytes(bytes(range(256)) * 8)
    result = cli("analyze", name)
    assert "\x1b" not in result.err
    assert result.err.count("\n") == 1
    (logs / name).write_text((logs / "healthy.csv").read_text())
    assert "\x1b" not in cli("analyze", name).out

from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.core.errors import ConfigError
from trainscope.core.finding import Severity
from trainscope.core.settings import Settings, load_settings, parse_severity, settings_from

WHOLE = """
fail_on = "error"
gate = "new"
select = ["spikes", "non_finite"]
ignore = ["plateau"]
expect = ["train/loss at step 200 <= 6.5"]

[detectors.spikes]
enabled = true
severity = "info"
min_rise = 0.1
"""


def check_whole(found: Settings) -> None:
    assert (found.fail_on, found.gate, found.select, found.ignore) == (
        "error", "new", ["spikes", "non_finite"], ["plateau"],
    )  # fmt: skip
    assert found.expect == ["train/loss at step 200 <= 6.5"]
    assert found.detectors == {"spikes": {"enabled": True, "severity": "info", "min_rise": 0.1}}


def test_a_settings_file_holds_every_setting(tmp_path: Path):
    (tmp_path / "trainscope.toml").write_text(WHOLE)
    check_whole(load_settings(tmp_path / "trainscope.toml"))


def test_so_does_a_table_of_pyproject(tmp_path: Path):
    text = "[project]\nname = 'x'\n[tool.trainscope]" + WHOLE.replace("[detectors", "[tool.trainscope.detectors")
    (tmp_path / "pyproject.toml").write_text(text)
    check_whole(load_settings(tmp_path / "pyproject.toml"))
    check_whole(load_settings(start=tmp_path))


def test_without_a_file_the_defaults_hold(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    assert load_settings(start=tmp_path) == Settings()


def test_the_search_goes_up_to_the_root_of_the_repository_and_no_further(tmp_path: Path):
    inner = tmp_path / "repo" / "runs" / "today"
    inner.mkdir(parents=True)
    (tmp_path / "trainscope.toml").write_text('fail_on = "never"')
    (tmp_path / "repo" / ".git").mkdir()
    assert load_settings(start=inner).fail_on == "warning"
    (tmp_path / "repo" / "trainscope.toml").write_text('fail_on = "info"')
    assert load_settings(start=inner).fail_on == "info"
    (inner / "trainscope.toml").write_text('fail_on = "error"')
    assert load_settings(start=inner).fail_on == "error"


def test_a_worktree_whose_git_is_a_file_ends_the_search_too(tmp_path: Path):
    inner = tmp_path / "worktree"
    inner.mkdir()
    (tmp_path / "trainscope.toml").write_text('fail_on = "never"')
    (inner / ".git").write_text("gitdir: elsewhere")
    assert load_settings(start=inner).fail_on == "warning"


def test_a_pyproject_without_the_table_does_not_end_the_search(tmp_path: Path):
    inner = tmp_path / "package"
    inner.mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "trainscope.toml").write_text('fail_on = "error"')
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load_settings(start=inner).fail_on == "error"


def test_the_file_of_its_own_comes_before_pyproject(tmp_path: Path):
    (tmp_path / "trainscope.toml").write_text('fail_on = "error"')
    (tmp_path / "pyproject.toml").write_text('[tool.trainscope]\nfail_on = "info"')
    assert load_settings(start=tmp_path).fail_on == "error"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"fail_onn": "error"}, "unknown key 'fail_onn'; did you mean 'fail_on'?"),
        ({"slect": []}, "unknown key 'slect'; did you mean 'select'?"),
        (
            {"xyzzy": 1},
            "unknown key 'xyzzy'; allowed: baseline, command, detectors, expect, fail_on, gate, ignore, logs, seed, "
            "select, steps, timeout",
        ),
        ({"fail_on": "errors"}, "fail_on = 'errors': input should be 'never', 'info', 'warning' or 'error'"),
        ({"fail_on": 3}, "fail_on = 3: input should be"),
        ({"gate": "old"}, "gate = 'old': input should be 'all' or 'new'"),
        ({"select": "spikes"}, "select = 'spikes': input should be a valid list"),
        ({"select": [1]}, "select.0 = 1: input should be a valid string"),
        ({"detectors": []}, "detectors = []: input should be a valid dictionary"),
        ({"detectors": {"spikes": 3}}, "detectors.spikes = 3: input should be a valid dictionary"),
        ({"expect": {"a": 1}}, "expect = {'a': 1}: input should be a valid list"),
    ],
)
def test_a_wrong_key_or_value_is_named_in_one_line(table, reason):
    with pytest.raises(ConfigError) as error:
        settings_from(table, "here.toml")
    assert str(error.value).startswith(f"here.toml: {reason}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [None, 3, "text", ["a"]])
def test_something_that_is_no_table_is_refused(data):
    with pytest.raises(ConfigError, match=f"here.toml: expected a table of settings, got {type(data).__name__}"):
        settings_from(data, "here.toml")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"fail_on = ", "not valid TOML"),
        (b"\xff\xfe", "cannot be read"),
        (b"fail_on = 'error'\nfail_on = 'info'", "not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content, reason):
    path = tmp_path / "trainscope.toml"
    path.write_bytes(content)
    for load in (lambda: load_settings(path), lambda: load_settings(start=tmp_path)):
        with pytest.raises(ConfigError, match=reason) as error:
            load()
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)


def test_a_file_that_was_named_must_be_there(tmp_path: Path):
    with pytest.raises(ConfigError, match="no such file"):
        load_settings(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path)


def test_a_pyproject_that_was_named_must_have_the_table(tmp_path: Path):
    path = tmp_path / "pyproject.toml"
    for text in ("[project]\nname = 'x'\n", "tool = 3\n", "[tool.other]\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"pyproject\.toml: no \[tool\.trainscope\] table"):
            load_settings(path)
    path.write_text("[tool]\ntrainscope = 3\n")
    with pytest.raises(ConfigError, match="expected a table of settings, got int"):
        load_settings(path)


def test_settings_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Settings().fail_on = "never"


@pytest.mark.parametrize("severity", list(Severity))
def test_a_severity_is_read_by_its_name(severity):
    assert parse_severity(severity.label, "here") is severity


@pytest.mark.parametrize(
    ("value", "hint"),
    [("warn", "did you mean 'warning'"), ("ERROR", "allowed: error, info, warning"), (2, "allowed"), (None, "allowed")],
)
def test_what_is_no_severity_is_quoted_with_its_place(value, hint):
    with pytest.raises(ConfigError) as error:
        parse_severity(value, "here")
    assert str(error.value).startswith(f"here: {value!r} is not a severity; {hint}")

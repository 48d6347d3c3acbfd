from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.core.settings import MAX_PARAMETER
from trainscope.detectors import DETECTORS


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["no-such"], "No such command 'no-such'; see trainscope --help"),
        (["analyze"], "Missing argument 'PATH...'; see trainscope analyze --help"),
        (
            ["analyze", "a", "--no-such"],
            "No such option '--no-such'; did you mean '--no-color'; see trainscope analyze --help",
        ),
        (["analyze", "a", "--fail-on", "fatal"], "Invalid value for '--fail-on'"),
        (["explain"], "Missing argument 'ID'; see trainscope explain --help"),
    ],
)
def test_wrong_usage_is_one_line_on_standard_error(cli, args, said):
    result = cli(*args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = " + b"[" * 20000 + b"]" * 20000, "not valid TOML (nested too deeply)"),
        (b"x = " + b"9" * 5001, "not valid TOML ("),
        ("fail_on = 'error'".encode("utf-16"), "cannot be read (it is UTF-16; save it as UTF-8)"),
        (b"fail_on = '\xff'", "cannot be read (byte 11 is not UTF-8; save it as UTF-8)"),
        (b"[detectors.spikes]\nmin_rise = nan", "detectors.spikes.min_rise: expected a number from 0"),
        (b"[detectors.spikes]\nno_such = 1", "detectors.spikes.no_such: no such parameter"),
        (b"ignore = ['no_such']", "no detector is called 'no_such'"),
        (b"expect = ['loss']", "expect: cannot read 'loss'"),
        (b"expect = ['loss last < 3']\n[detectors.expectation]\nenabled = false", "remove one of the two"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_wrong_settings_file_is_named_in_one_line(cli, logs: Path, content, reason, named):
    file = "other.toml" if named else "trainscope.toml"
    (logs / file).write_bytes(content)
    result = cli("analyze", "healthy.csv", *(["--config", file] if named else []))
    assert (result.code, result.out) == (2, "")
    assert file in result.err.partition(": ")[2].partition(": ")[0]
    assert reason in result.err
    assert result.err.count("\n") == 1


def test_a_byte_order_mark_before_the_settings_is_no_error(cli, logs: Path):
    (logs / "trainscope.toml").write_bytes(b"\xef\xbb\xbffail_on = 'never'\r\n")
    assert cli("analyze", "nan.csv").code == 0


def test_what_the_command_line_gets_wrong_is_not_put_on_the_settings_file(cli, logs: Path):
    (logs / "trainscope.toml").write_text("fail_on = 'error'\n")
    result = cli("analyze", "healthy.csv", "--select", "no_such")
    assert result.err.startswith("error: no detector is called 'no_such'")


NUMBERS = [
    (detector.id, name, default)
    for detector in DETECTORS
    for name, default in detector.parameters().items()
    if isinstance(default, (int, float)) and not isinstance(default, bool)
]


@pytest.mark.slow
@pytest.mark.parametrize(("detector", "name", "default"), NUMBERS)
def test_every_parameter_is_a_finite_number_that_is_not_negative(cli, logs: Path, detector, name, default):
    wrong = ["-1", str(MAX_PARAMETER + 1), "1" + "0" * 400, "true", '"1"']
    wrong += ["nan", "inf", "-inf", "-0.5", "1e300"]
    for value in wrong:
        (logs / "trainscope.toml").write_text(f"[detectors.{detector}]\n{name} = {value}\n")
        result = cli("detectors")
        assert result.code == 2, value
        assert f"detectors.{detector}.{name}: expected " in result.err
        assert result.err.count("\n") == 1
        assert len(result.err) < 300
    for value in (default, 0 if isinstance(default, int) else 0.0, MAX_PARAMETER):
        (logs / "trainscope.toml").write_text(f"[detectors.{detector}]\n{name} = {value}\n")
        assert cli("detectors").code == 0, value


def test_a_metric_without_a_name_is_shown_in_quotes(cli, logs: Path):
    (logs / "nameless.jsonl").write_text("".join(f'{{"step": {i}, "": {i}.5}}\n' for i in range(50)))
    result = cli("analyze", "nameless.jsonl")
    assert result.code == 2
    assert 'among its metrics ("")' in result.err

"""The registry is complete, its pages are whole, and wrong settings are named."""

from __future__ import annotations

import ast
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import trainscope.detectors
from trainscope.core.errors import ConfigError
from trainscope.core.finding import Severity
from trainscope.core.settings import Settings
from trainscope.detectors import DETECTORS, by_id, configure, judge

from .pages import HEADINGS, section
from .planted import PLANTED
from .policy_runs import POLICY_PLANTED
from .runs import falling, run_of
from .smoke_runs import SMOKE_PLANTED

FOLDER = Path(trainscope.detectors.__file__).parent
EACH = pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)


def test_every_module_of_the_folder_is_registered_under_its_own_name():
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base", "measured", "registry"}
    assert modules == {d.id for d in DETECTORS}
    assert len({d.id for d in DETECTORS}) == len(DETECTORS)


def test_every_detector_has_tests_of_its_own_and_a_planted_fault():
    tested = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert {d.id for d in DETECTORS} <= tested
    assert {d.id for d in DETECTORS} == set(PLANTED) | set(SMOKE_PLANTED) | set(POLICY_PLANTED)


@EACH
def test_an_id_is_the_module_that_defines_it(detector):
    assert detector.detect.__module__ == f"trainscope.detectors.{detector.id}"
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", detector.id)


@EACH
def test_a_page_has_the_fixed_headings_in_order(detector):
    lines = detector.page.splitlines()
    assert [line for line in lines[1:] if line and not line.startswith(" ")] == HEADINGS
    assert lines[0].startswith(f"{detector.id}: ")
    for heading in HEADINGS:
        assert len(section(detector.page, heading).split()) >= 1, heading


@EACH
def test_a_page_explains_every_parameter_and_no_other(detector):
    names = [f.name for f in fields(detector.params)]
    text = section(detector.page, "Parameters")
    if not names:
        assert text.strip() == "None."
        return
    said = [n for heads in re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*): ", text, re.MULTILINE) for n in heads.split(", ")]
    assert sorted(said) == sorted(names)


@EACH
def test_findings_carry_the_id_and_a_title_that_the_module_writes_out(detector):
    """`detectors` and `explain` show the id; a typo in one of several Finding calls would go unseen."""
    tree = ast.parse((FOLDER / f"{detector.id}.py").read_text(encoding="utf-8"))
    said = {
        keyword.value.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding"
        for keyword in call.keywords
        if keyword.arg == "detector" and isinstance(keyword.value, ast.Constant)
    }
    assert said == {detector.id}


@EACH
def test_defaults_cannot_be_changed_by_accident(detector):
    for name in detector.parameters():
        with pytest.raises(FrozenInstanceError):
            setattr(detector.params, name, 1)


def test_detectors_run_in_report_order_with_their_defaults():
    chosen = configure(Settings())
    assert [c.detector.id for c in chosen] == [d.id for d in DETECTORS if d.id != "expectation"]
    assert all(c.params == c.detector.params and c.severity is None for c in chosen)


def test_select_and_ignore_choose_and_expectations_always_run():
    chosen = configure(Settings(select=["spikes", "plateau"], ignore=["plateau"], expect=["train/loss last < 3"]))
    assert [c.detector.id for c in chosen] == ["spikes", "expectation"]


def test_a_detector_can_be_turned_off_and_its_parameters_set():
    options = {"spikes": {"enabled": False}, "plateau": {"gain": 0.02}, "grad_norm": {"burst": 6}}
    chosen = {c.detector.id: c for c in configure(Settings(detectors=options))}
    assert "spikes" not in chosen
    assert chosen["plateau"].params.gain == 0.02
    assert chosen["grad_norm"].params.burst == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"select": ["spike"]}, "no detector is called 'spike'; did you mean 'spikes'?"),
        ({"ignore": ["plateu"]}, "no detector is called 'plateu'; did you mean 'plateau'?"),
        ({"detectors": {"overfit": {}}}, "no detector is called 'overfit'; did you mean 'overfitting'?"),
        (
            {"detectors": {"spikes": {"min_rize": 1.0}}},
            "detectors.spikes.min_rize: no such parameter; did you mean 'min_rise'?",
        ),
        (
            {"detectors": {"spikes": {"severty": "info"}}},
            "detectors.spikes.severty: no such parameter; did you mean 'severity'?",
        ),
        (
            {"detectors": {"spikes": {"severity": "warn"}}},
            "detectors.spikes.severity: 'warn' is not a severity; did you mean 'warning'?",
        ),
        (
            {"detectors": {"spikes": {"severity": 3}}},
            "detectors.spikes.severity: 3 is not a severity; allowed: error, info, warning",
        ),
        (
            {"detectors": {"spikes": {"enabled": "no"}}},
            "detectors.spikes.enabled: expected true or false, got 'no'",
        ),
        (
            {"detectors": {"spikes": {"min_rise": "much"}}},
            "detectors.spikes.min_rise: expected float, got 'much'",
        ),
        (
            {"detectors": {"spikes": {"min_rise": True}}},
            "detectors.spikes.min_rise: expected float, got True",
        ),
        ({"detectors": {"zero_loss": {"points": 2.5}}}, "detectors.zero_loss.points: expected int, got 2.5"),
    ],
)
def test_a_wrong_setting_is_named_with_the_nearest_right_one(settings, message):
    with pytest.raises(ConfigError) as error:
        configure(Settings(**settings))
    assert str(error.value) == message


def test_an_unknown_word_lists_what_there_is():
    with pytest.raises(
        ConfigError, match="no detector is called 'xyzzy'; allowed: attention_logits, bad_batch, clipping, "
    ):
        by_id("xyzzy")


def test_a_severity_of_the_settings_replaces_that_of_every_finding():
    run = PLANTED["spikes"].run
    (usual,) = judge(run, configure(Settings())).findings
    (raised,) = judge(run, configure(Settings(detectors={"spikes": {"severity": "error"}}))).findings
    assert (usual.severity, raised.severity) == (Severity.WARNING, Severity.ERROR)
    assert raised.fingerprint == usual.fingerprint


def test_findings_come_worst_first_and_then_by_step():
    x = falling()
    x[120] *= 1.6
    x[220] *= 1.6
    x[300:310] = 0.0
    found = judge(run_of({"train/loss": x}), configure(Settings())).findings
    assert [(f.detector, f.start_step) for f in found] == [("zero_loss", 3010), ("spikes", 1210), ("spikes", 2210)]


def test_what_could_not_be_judged_is_said_with_the_detector_that_could_not():
    judgement = judge(run_of({"train/loss": falling()}), configure(Settings()))
    skipped = {s.detector: s.reason for s in judgement.skipped}
    assert skipped["overfitting"] == "needs eval/loss"
    assert skipped["grad_norm"] == "needs train/grad_norm"
    assert skipped["lr_schedule"] == "needs learning_rate"
    assert "spikes" not in skipped

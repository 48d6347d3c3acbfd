from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from trainscope.core.finding import Finding, Severity

SPIKE = Finding("spikes", Severity.WARNING, "Loss spike", "train/loss jumped.", "train/loss", None, 10, 12, 11)


def test_severities_are_ordered_so_that_gates_can_compare():
    assert Severity.INFO < Severity.WARNING < Severity.ERROR
    assert [s.label for s in Severity] == ["info", "warning", "error"]


def test_a_fingerprint_is_eight_hex_digits_that_never_change():
    """A baseline file from an older version must still match: the digits are part of the format."""
    assert SPIKE.fingerprint == "918f87ce"


def test_the_same_fault_in_a_rerun_keeps_its_fingerprint():
    again = replace(SPIKE, severity=Severity.ERROR, message="other", start_step=500, peak_step=501, evidence={"x": 1})
    assert again.fingerprint == SPIKE.fingerprint


@pytest.mark.parametrize(
    "change", [{"detector": "plateau"}, {"metric": "eval/loss"}, {"metric": None}, {"layer": "h.0"}]
)
def test_another_fault_has_another(change):
    assert replace(SPIKE, **change).fingerprint != SPIKE.fingerprint


def test_parts_of_a_fingerprint_do_not_run_into_each_other():
    one = replace(SPIKE, metric="a", layer="b")
    other = replace(SPIKE, metric="ab", layer=None)
    assert one.fingerprint != other.fingerprint


def test_names_that_are_no_valid_unicode_have_one_too():
    assert len(replace(SPIKE, metric="loss\udcff").fingerprint) == 8


def test_a_finding_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        SPIKE.title = "other"
    with pytest.raises(TypeError):
        SPIKE.evidence["x"] = 1

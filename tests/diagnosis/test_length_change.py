from __future__ import annotations

import pytest
from smoke_runs import smoke_run

from trainscope.core.finding import Severity

from .runs import log, losses, only, said, verdicts


def ended(steps: int, by: str = "script", wanted: int = 200):
    """A smoke run of so many steps, ended by itself or by the recorder."""
    full = smoke_run()
    series = {name: one.value[:steps] for name, one in full.series.items()}
    return smoke_run(series, steps=steps, ended=by, steps_wanted=wanted)


def test_a_script_that_ends_by_itself_before_its_baseline_is_found():
    base = ended(120, by="steps")
    one = only(ended(40), base, by="length_change")
    assert (one.severity, one.title, one.end_step) == (Severity.WARNING, "Training ends early", 39)
    assert "after 40 of the baseline's 120 steps" in one.message
    assert one.evidence["steps"] == 40
    assert verdicts(ended(40), base)["length"] == "changed"


@pytest.mark.parametrize(("steps", "is_found"), [(119, False), (114, False), (113, True)])
def test_a_twentieth_of_the_steps_may_be_missing(steps, is_found):
    assert ("length_change" in said(ended(steps), ended(120))) is is_found


@pytest.mark.parametrize(("steps", "is_found"), [(9, False), (8, True)])
def test_of_a_few_steps_one_may_be_missing(steps, is_found):
    assert ("length_change" in said(ended(steps), ended(10))) is is_found


def test_a_run_that_the_recorder_ended_is_shorter_on_purpose_and_that_is_said():
    base, short = ended(120, by="steps"), ended(40, by="steps")
    assert "length_change" not in said(short, base)
    assert verdicts(short, base)["length"] == "only the first 40 of the baseline's 120 steps are compared"


def test_a_script_that_took_all_steps_that_were_asked_for_did_not_end_early():
    assert "length_change" not in said(ended(40, wanted=40), ended(120))
    assert "length_change" in said(ended(40, wanted=60), ended(120))


def test_a_longer_run_and_one_as_long_as_a_baseline_are_no_finding():
    assert "length_change" not in said(ended(120, by="steps"), ended(40))
    assert verdicts(ended(40), ended(120, by="steps"), ended(40))["length"] == "same"


def test_a_log_that_ends_earlier_says_so_and_is_no_finding():
    short, base = log(losses(n=100)), log(losses())
    assert "length_change" not in said(short, base)
    assert verdicts(short, base)["length"] == "ends at step 99, the baseline at step 149"
    assert verdicts(base, base)["length"] == "same"

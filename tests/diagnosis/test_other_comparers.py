"""What all comparers have in common; and the learning rate, settings and where runs part."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from pages import HEADINGS, section
from smoke_runs import STEPS, evaluated, smoke_run

from trainscope.core.errors import ConfigError
from trainscope.core.settings import Settings
from trainscope.detectors import DETECTORS
from trainscope.diagnosis.compare import COMPARERS, compare_runs
from trainscope.diagnosis.configuration import changed

from .runs import log, losses, said

EACH = pytest.mark.parametrize("comparer", COMPARERS, ids=lambda c: c.id)


@EACH
def test_a_page_has_the_fixed_headings_and_every_parameter(comparer):
    lines = comparer.page.splitlines()
    assert [line for line in lines[1:] if line and not line.startswith(" ")] == HEADINGS
    assert lines[0].startswith(f"{comparer.id}: ")
    assert comparer.compare.__module__ == f"trainscope.diagnosis.{comparer.id}"
    text = section(comparer.page, "Parameters")
    names = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*): ", text, re.MULTILINE)
    assert sorted(n for heads in names for n in heads.split(", ")) == sorted(f.name for f in fields(comparer.params))


@EACH
def test_findings_carry_the_id_of_their_comparer(comparer):
    source = Path(__import__(comparer.compare.__module__, fromlist=["x"]).__file__).read_text(encoding="utf-8")
    said_ids = {
        keyword.value.value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Finding"
        for keyword in call.keywords
        if keyword.arg == "detector"
    }
    assert said_ids == {comparer.id}


def test_no_comparer_shares_its_id_with_a_detector():
    assert not {c.id for c in COMPARERS} & {d.id for d in DETECTORS}


def test_a_smoke_run_compared_with_itself_has_no_finding_of_any_severity():
    run = smoke_run({"smoke/eval_cross_entropy": evaluated(2.0, 1.0)})
    assert compare_runs(run, [run], Settings()).findings == ()


def test_a_schedule_that_runs_twice_as_fast_is_found():
    slow, fast = np.linspace(1.0, 0.1, STEPS), np.maximum(0.1, np.linspace(1.0, -0.8, STEPS))
    base, run = log(losses(), learning_rate=slow), log(losses(), learning_rate=fast)
    assert "learning_rate_change" in said(run, base)


@pytest.mark.parametrize(("rate", "higher"), [(2e-3, 1), (5e-4, 0)])
def test_which_rate_is_higher_is_a_number_as_the_schema_of_findings_has_it(rate, higher):
    base, run = (log(losses(), learning_rate=np.full(STEPS, each)) for each in (1e-3, rate))
    (finding,) = said(run, base)["learning_rate_change"]
    assert finding.evidence["higher"] == higher
    assert not any(isinstance(value, bool) for value in finding.evidence.values())


def test_one_percent_more_learning_rate_and_rounding_at_zero_are_no_finding():
    decay = np.linspace(1.0, 0.0, STEPS)
    base, run = log(losses(), learning_rate=decay), log(losses(), learning_rate=1.01 * decay + 1e-9)
    assert said(run, base) == {}


def test_what_was_read_of_a_loader_is_no_setting():
    def read(asked: int, batch_size: int = 16):
        return smoke_run(loaders=[{"batch_size": batch_size, "workers": 0, "asked": asked, "training": True}])

    assert changed(read(960), read(320)) == ()
    ((key, before, now),) = changed(read(960, 32), read(320))
    assert (key, before, now) == (
        "loaders", '[{"batch_size": 16, "workers": 0}]', '[{"batch_size": 32, "workers": 0}]'
    )  # fmt: skip


def test_where_runs_part_is_only_told_beside_a_finding():
    found = compare_runs(log(losses() + 0.2), [log(losses())], Settings()).findings
    assert [f.detector for f in found] == ["paired_loss", "first_difference"]
    assert [f.detector for f in compare_runs(log(losses() + 0.005), [log(losses())], Settings()).findings] == []


def test_settings_choose_and_tune_comparers():
    run, base = log(losses() + 0.05), log(losses())
    assert said(run, base, detectors={"paired_loss": {"absolute": 0.2}}) == {}
    assert said(run, base, ignore=["paired_loss"]) == {}
    with pytest.raises(ConfigError, match=r"detectors\.paired_loss\.absolut: no such parameter"):
        compare_runs(run, [base], Settings(detectors={"paired_loss": {"absolut": 1.0}}))

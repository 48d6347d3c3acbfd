"""Healthy trainings that look unusual from outside are recorded, run as they would alone, and are not flagged."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainscope.core.finding import Severity
from trainscope.detectors import DETECTORS, by_id

from .conftest import Record, Script, numbers, script

pytestmark = pytest.mark.slow
EXACT = ("step_accounting", "optimizer_state", "stale_gradients", "parameters_not_training")


@pytest.mark.parametrize("variant", ["judged_by_a_network", "probe_without_dropout"])
def test_a_network_that_is_not_trained_may_be_in_eval_mode(variant: str, record: Record, warm: Script):
    program = Path(__file__).parents[2] / "bench" / "structural" / "modes.py"
    run = record(*warm(sys.executable, str(program), variant, "--seed", "1"), steps=8).runs[0]
    detector = by_id("eval_mode")
    found = detector.detect(run, detector.params)
    assert isinstance(found, list)
    assert [f for f in found if f.severity >= Severity.WARNING] == []


@pytest.mark.parametrize("name", ["asks_first", "taking_turns"])
def test_an_unusual_training_is_recorded_bit_by_bit_and_not_flagged(
    name: str, record: Record, warm_script: Script, plain: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("STEPS", "12")
    made = record(*warm_script(name))
    assert numbers(made.output) == numbers(plain(script(name)))
    assert made.smoke.steps >= 12
    assert made.smoke.faults == ()
    for detector in DETECTORS:
        if detector.id in EXACT:
            found = detector.detect(made.runs[0], detector.params)
            bad = [f for f in found if f.severity >= Severity.WARNING] if isinstance(found, list) else []
            assert bad == [], detector.id

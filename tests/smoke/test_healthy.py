"""Healthy trainings that look unusual from outside are recorded, run as they would alone, and are not flagged."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainscope.core.finding import Severity
from trainscope.detectors import DETECTORS

from .conftest import Record, Script, numbers, script

pytestmark = pytest.mark.slow
EXACT = ("step_accounting", "optimizer_state", "stale_gradients", "parameters_not_training")


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

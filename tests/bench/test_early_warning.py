"""The counting of scripts/verify_*.py: when a loss has diverged, and what leads it."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def warning():
    pytest.importorskip("torch")
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield importlib.import_module("early_warning")
    finally:
        sys.path.remove(str(SCRIPTS))


def healthy(warning):
    rng = np.random.default_rng(0)
    return list(2.0 + 0.05 * rng.normal(size=warning.STEPS))


def test_a_loss_has_diverged_when_it_stays_up_for_three_steps(warning):
    loss = healthy(warning)
    assert warning.divergence(loss) is None
    loss[150] = 9.0
    assert warning.divergence(loss) is None
    loss[170:] = [9.0] * len(loss[170:])
    assert warning.divergence(loss) == 170


def test_a_loss_that_is_not_finite_has_diverged_there(warning):
    loss = [*healthy(warning)[:180], math.nan]
    assert warning.divergence(loss) == 180


def test_a_lead_is_counted_to_the_divergence_and_what_both_trainings_share_once(warning, tmp_path):
    loss, quiet = healthy(warning), healthy(warning)
    quiet[90] = 4.0
    early = quiet[:140] + [4.0] * (len(quiet) - 140)
    loss[160:] = [9.0] * len(loss[160:])
    for kind, log in (("ramp", {"loss": loss, "kurtosis": early}), ("control", {"loss": quiet, "kurtosis": quiet})):
        (tmp_path / f"plain-{kind}-0.json").write_text(json.dumps(log))
    found = warning.measure("plain", warning.KURTOSIS, 1, tmp_path)
    assert found.leads == (20,)
    assert (found.false, found.controls_flagged, found.undiverged) == (1, 1, 0)
    assert found.watched == warning.STEPS - warning.CALM
    assert "lead 20 to 20 steps" in found.line("nothing")


@pytest.mark.parametrize("kind", ["plain", "experts", "addressor"])
def test_each_kind_of_model_trains_and_shows_its_signals(warning, monkeypatch, kind):
    monkeypatch.setattr(warning, "STEPS", 3)
    log = warning.train(kind, 0, 1.0)
    names = {"loss", "kurtosis", "attention maximum", "attention entropy"} | {"largest share"}
    assert set(log) == (names if kind != "plain" else names - {"largest share"})
    assert all(len(values) == 3 and all(map(math.isfinite, values)) for values in log.values())

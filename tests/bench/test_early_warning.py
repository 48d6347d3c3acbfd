"""The counting of scripts/verify_*.py: when a loss has diverged, what leads it, and what is a false alarm."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[2] / "scripts"
RAMP = 250


@pytest.fixture(scope="module")
def scripts():
    pytest.importorskip("torch")
    sys.path.insert(0, str(SCRIPTS))
    names = ("divergences", "early_warning", "recordings", "verify_signal_ordering")
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.fixture
def warning(scripts):
    return scripts["early_warning"]


def healthy(steps=400, seed=0):
    return list(2.0 + 0.05 * np.random.default_rng(seed).normal(size=steps))


def recording(scripts, loss, **layers):
    named = {k: {f"blocks.{i}.attn": np.array(row) for i, row in enumerate(rows)} for k, rows in layers.items()}
    return scripts["recordings"].Recording(np.array(loss), named, {})


def seen(warning, up, far, climb, control=()):
    ends = {"fast": (up, far)}
    return warning.Seen(ends, {"fast": climb, "control": control})


def test_a_loss_has_diverged_when_it_stays_up_for_three_steps(scripts):
    divergence = scripts["divergences"].divergence
    loss = healthy()
    assert divergence(loss, 1.5) is None
    loss[300] = loss[301] = 9.0
    assert divergence(loss, 1.5) is None
    loss[330:] = [9.0] * 70
    assert divergence(loss, 1.5) == 330
    assert divergence(loss, 10.0) is None


def test_what_a_loss_did_before_the_climb_is_no_divergence(scripts):
    loss = healthy()
    loss[100:110] = [9.0] * 10
    assert scripts["divergences"].divergence(loss, 1.5) is None


def test_a_loss_that_is_not_finite_has_diverged_there(scripts):
    loss = [*healthy()[:300], math.nan]
    assert scripts["divergences"].divergence(loss, 10.0) == 300


def test_a_lead_is_counted_from_the_first_alarm_of_the_climb(warning):
    found = warning.leads([seen(warning, 280, 290, [100, 260, 285], [100])], "fast")
    assert (found.seen, found.gone, found.flagged) == ((20,), (30,), 0)


def test_an_alarm_after_the_divergence_is_a_negative_lead_and_none_is_silence(warning):
    found = warning.leads([seen(warning, 280, 290, [285]), seen(warning, 280, 290, [90])], "fast")
    assert found.seen == (-5, None)
    assert warning.span(found.seen) == "-5 to -5, median -5, ahead in 0/2, silent in 1"


def test_a_training_that_does_not_diverge_has_no_lead(warning):
    assert warning.leads([seen(warning, 280, None, [260])], "fast").seen == ()


def test_a_control_is_flagged_only_by_what_comes_before_the_rise_of_its_twin(warning):
    controls = ([RAMP - 1], [RAMP], [279], [280])
    found = warning.leads([seen(warning, 280, 290, [260], control) for control in controls], "fast")
    assert found.flagged == 2


def test_alarms_within_twenty_steps_of_the_last_are_one_event(warning):
    assert warning.events([70, 90, 110, 131, 200]) == [70, 131, 200]
    assert warning.events([]) == []


def test_false_alarms_of_learning_and_of_a_settled_control_are_counted_apart(warning):
    found = warning.quiet([seen(warning, 280, 290, [], [30, 70, 260, 265, 400]), seen(warning, 280, 290, [], [])])
    assert (found.learning, found.settled, found.flagged, found.seeds) == (1, 2, 1, 2)


def test_no_false_alarm_has_the_upper_bound_of_an_exact_interval(warning, scripts):
    one = warning.Quiet(0, 0, 0, 12).rates().split(" | ")[1]
    steps = 12 * (scripts["divergences"].END - RAMP)
    assert one == f"0: 0.0 (at most {-math.log(0.025) / steps * 1e4:.1f})"


def test_no_rule_knows_a_later_step(warning, scripts):
    rng = np.random.default_rng(1)
    logits = 10.0 + 0.3 * rng.normal(size=(2, 320))
    logits[1, 280:] *= np.linspace(1.0, 60.0, 40)
    entropy = 2.0 + 0.05 * rng.normal(size=(1, 320))
    loss = healthy(320)
    loss[300:] = [v + 3.0 for v in loss[300:]]
    rules = (
        warning.by_loss,
        warning.by_departure("attn_logit_max"),
        warning.by_limit,
        warning.by_margin("attn_logit_max"),
        warning.by_cusum("attn_logit_max"),
    )
    for rule in rules:
        whole = rule(recording(scripts, loss, attn_logit_max=logits, attn_entropy=entropy))
        assert whole, rule
        for end in (290, 305):
            cut = recording(scripts, loss[:end], attn_logit_max=logits[:, :end], attn_entropy=entropy[:, :end])
            assert rule(cut) == [s for s in whole if s < end], rule


def test_a_steady_growth_is_usual_to_the_rule_of_a_story_and_an_alarm_to_that_of_the_loss(warning, scripts):
    rng = np.random.default_rng(2)
    logits = np.linspace(5.0, 30.0, 400)[None, :] * np.exp(0.05 * rng.normal(size=(1, 400)))
    grown = recording(scripts, healthy(), attn_logit_max=logits)
    assert warning.by_departure("attn_logit_max")(grown) == []
    assert warning.by_cusum("attn_logit_max")(grown)


def test_experts_and_slots_are_judged_by_their_own_detector(warning, scripts):
    calm, locked = np.full(300, 0.3), np.concatenate([np.full(260, 0.3), np.full(40, 0.7)])
    shares = {"blocks.0.mlp.router": calm, "blocks.0.mlp.addressor": locked}
    both = scripts["recordings"].Recording(np.array(healthy(300)), {}, shares)
    assert warning.by_shares("addressor_concentration_drift")(both) == [262]
    assert warning.by_shares("expert_utilization_drift")(both) == []


def test_only_layers_of_the_name_that_is_asked_for_are_looked_at(warning, scripts):
    rows = np.random.default_rng(3).normal(size=(2, 300)) * 0.05
    rows[1, 280:] = 40.0
    run = recording(scripts, healthy(300), act_kurtosis=rows)
    assert warning.by_departure("act_kurtosis")(run)[0] == 280
    assert warning.by_departure("act_kurtosis", "blocks.1")(run)[0] == 280
    assert warning.by_departure("act_kurtosis", "blocks.0")(run) == []


def test_the_limit_of_logits_asks_for_the_median_of_ten(warning, scripts):
    logits = np.full((1, 300), 20.0)
    logits[0, 260:264] = 900.0
    assert warning.by_limit(recording(scripts, healthy(300), attn_logit_max=logits)) == []
    logits[0, 280:] = 900.0
    assert warning.by_limit(recording(scripts, healthy(300), attn_logit_max=logits))[0] == 284


def test_an_order_joins_what_comes_at_one_step(scripts):
    ordering = scripts["verify_signal_ordering"]
    first = {"loss": 270, "kurtosis": 265, "logits": 270}
    assert ordering.order(first) == "kurtosis < loss = logits"
    assert ordering.is_last(first, "loss")
    assert not ordering.is_last(first, "kurtosis")
    assert not ordering.is_last(first, "entropy")


@pytest.mark.parametrize("kind", ["plain", "routed"])
def test_a_recording_holds_every_step_and_the_three_share_what_came_before(scripts, monkeypatch, tmp_path, kind):
    for name in ("divergences", "recordings"):
        monkeypatch.setattr(scripts[name], "RAMP", 35)
    monkeypatch.setattr(scripts["divergences"], "END", 60)
    monkeypatch.setattr(scripts["divergences"], "LONGEST", 4)
    scripts["divergences"].record(kind, 0, tmp_path)
    parts = {part: scripts["recordings"].load(tmp_path, kind, part, 0) for part in ("control", "fast")}
    assert [len(p.loss) for p in parts.values()] == [60, 39]
    assert (parts["control"].loss[:36] == parts["fast"].loss[:36]).all()
    assert parts["control"].loss[38] != parts["fast"].loss[38]
    if kind == "plain":
        layers = parts["control"].layers
        assert set(layers) == set(scripts["recordings"].STATISTICS)
        assert {len(values) for rows in layers.values() for values in rows.values()} == {60}
        assert list(layers["attn_logit_max"]) == ["blocks.0.attn", "blocks.1.attn"]
        assert sum("ln" in layer for layer in layers["act_kurtosis"]) == 5
    else:
        assert {name: len(v) for name, v in parts["control"].shares.items()} == dict.fromkeys(
            ("blocks.0.mlp.router", "blocks.0.mlp.addressor", "blocks.1.mlp.router", "blocks.1.mlp.addressor"), 60
        )

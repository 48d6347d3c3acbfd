"""The statistics of bench/detectors: intervals, alarms against the truth, and rules that know no later step."""

from __future__ import annotations

import ast
import json
import math

import numpy as np
import owners
import pytest
from alarms import DELAYS, QUIET, delay_at, events, levels, peaks, threshold_for
from intervals import rate, share
from more_faults import MORE_FAULTS
from planted import FAULTS as PLANTED_FAULTS
from rules import RULES
from scipy import stats
from structural import CASES, KEY, SCRIPTS, cell, is_found, kept
from truth import FAMILIES, FAULTS, ONSETS, SIGMAS, STEPS, family, healthy_loss, planted_loss

from trainscope.core.finding import Finding, Severity
from trainscope.detectors import DETECTORS
from trainscope.detectors.measured import FIGURES, measured

pytestmark = pytest.mark.slow


def test_no_alarm_leaves_room_for_three():
    # The rule of three, and Garwood's bounds for 10 events as printed in tables: 4.795 and 18.390.
    assert rate(0, 10_000).low == 0.0
    assert rate(0, 10_000).high == pytest.approx(-math.log(0.025))
    assert rate(10, 10_000).low == pytest.approx(4.795, abs=5e-4)
    assert rate(10, 10_000).high == pytest.approx(18.390, abs=5e-4)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_bounds_of_a_rate_leave_the_stated_tails(count):
    found = rate(count, 10_000)
    assert stats.poisson.sf(count - 1, found.low) == pytest.approx(0.025)
    assert stats.poisson.cdf(count, found.high) == pytest.approx(0.025)


def test_a_rate_is_per_ten_thousand_steps():
    assert rate(3, 60_000).value == pytest.approx(0.5)


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (7, 20), (20, 20), (81, 263)])
def test_a_share_has_wilsons_interval(hits, n):
    z, p = stats.norm.ppf(0.975), hits / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    found = share(hits, n)
    assert (found.low, found.high) == pytest.approx((max(0.0, centre - half), min(1.0, centre + half)), abs=1e-12)


def test_a_share_of_nothing_is_unknown():
    found = share(0, 0)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)


def test_peaks_are_the_alarms_that_any_threshold_would_give():
    rng = np.random.default_rng(0)
    score = rng.normal(size=400)
    found = peaks(score, apart=20, most=100)
    for threshold in (2.0, 1.0):
        alarms = np.flatnonzero(score >= threshold)
        assert sum(p >= threshold for p in found) >= len(events((int(i), int(i)) for i in alarms))
    assert found == sorted(found, reverse=True)


def test_one_burst_is_one_peak_and_two_far_apart_are_two():
    score = np.full(200, -np.inf)
    score[50:58] = [1, 5, 9, 9, 8, 7, 3, 2]
    score[150] = 4.0
    assert peaks(score) == [9.0, 4.0]


def test_spans_at_most_twenty_steps_apart_are_one_event():
    assert events([(30, 40), (0, 10)]) == [(0, 40)]
    assert events([(31, 40), (0, 10)]) == [(0, 10), (31, 40)]
    assert events([(5, 9), (0, 50), (60, 65)]) == [(0, 65)]


def test_a_delay_is_the_first_grid_point_that_has_the_alarm():
    score = np.zeros(400)
    onset = 200
    score[onset + 7] = 5.0
    found = levels(score, onset)
    assert delay_at(found, 5.0) == 10
    assert delay_at(found, 5.1) == math.inf


def test_an_alarm_at_the_onset_has_a_delay_of_one_step():
    score = np.zeros(400)
    score[200] = 5.0
    assert delay_at(levels(score, 200), 3.0) == DELAYS[0] == 1


def test_a_detection_after_an_early_alarm_does_not_count():
    score = np.zeros(400)
    score[[200 - QUIET, 200]] = 5.0
    assert math.isnan(delay_at(levels(score, 200), 5.0))
    score[200 - QUIET] = 0.0
    score[200 - QUIET - 1] = 5.0
    assert delay_at(levels(score, 200), 5.0) == 1


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_a_matched_threshold_gives_as_many_alarms_as_allowed_and_the_next_lower_more(allowed):
    runs = [[9.0, 3.0, 2.0], [7.0, 5.0], [1.0]]
    everything = sorted((p for run in runs for p in run), reverse=True)
    threshold = threshold_for(runs, allowed)
    assert sum(p >= threshold for p in everything) == allowed
    assert sum(p >= everything[allowed] for p in everything) == allowed + 1


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_knows_no_later_step(rule):
    rng = np.random.default_rng(3)
    loss = np.stack([healthy_loss(rng, family("gauss"), 0.03) for _ in range(2)])[:, :1200]
    later = loss.copy()
    later[:, 1100:] += 3.0
    np.testing.assert_array_equal(rule.score(loss)[:, :1100], rule.score(later)[:, :1100])
    assert (rule.score(later)[:, 1100:] != rule.score(loss)[:, 1100:]).any()


def test_the_sigma_rule_is_that_of_a_slow_loop():
    rule = next(r for r in RULES if r.name == "6 sigma of 128")
    x = np.random.default_rng(5).normal(2.0, 0.1, size=(1, 300))
    score = rule.score(x)
    assert np.isneginf(score[0, :64]).all()
    for i in (64, 100, 128, 299):
        past = x[0, max(0, i - 128) : i]
        assert score[0, i] == pytest.approx((x[0, i] - past.mean()) / past.std(), rel=1e-6)


def test_the_ewma_rules_are_those_of_a_slow_loop():
    x = np.abs(np.random.default_rng(6).normal(2.0, 0.1, size=(2, 60)))
    metaseq = next(r for r in RULES if r.tool == "metaseq").score(x)
    zclip = next(r for r in RULES if r.tool == "ZClip").score(x)
    for row in range(2):
        mean = x[row, 0]
        for i in range(1, 60):
            assert i < 21 or metaseq[row, i] == pytest.approx(x[row, i] / mean)
            mean += 0.2 * (x[row, i] - mean)
        mean, variance = x[row, :25].mean(), x[row, :25].var()
        for i in range(25, 60):
            assert zclip[row, i] == pytest.approx((x[row, i] - mean) / math.sqrt(variance + 1e-12))
            mean = 0.97 * mean + 0.03 * x[row, i]
            variance = 0.97 * variance + 0.03 * (x[row, i] - mean) ** 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_leaves_what_was_before_it_alone(fault):
    loss, onset = planted_loss(np.random.default_rng(7), family("gauss"), 0.03, fault, 8.0)
    onset_again = int(np.random.default_rng(7).integers(*ONSETS))
    quiet, _ = planted_loss(np.random.default_rng(7), family("gauss"), 0.03, fault, 0.0)
    assert onset == onset_again
    np.testing.assert_array_equal(loss[:onset], quiet[:onset])
    assert np.abs(loss[onset : onset + 100] - quiet[onset : onset + 100]).max() > 0.01


@pytest.mark.parametrize("f", FAMILIES, ids=lambda f: f.name)
def test_healthy_noise_has_the_size_that_it_says(f):
    rng = np.random.default_rng(8)
    late = np.concatenate([np.diff(healthy_loss(rng, f, SIGMAS[1])[STEPS // 2 :]) for _ in range(20)])
    expected = SIGMAS[1] * math.sqrt(2.0 * (1.0 - f.phi)) * (1.15 if f.outliers else 1.0)
    assert late.std() == pytest.approx(expected, rel=0.25)


def test_every_detector_is_measured_or_says_why_not():
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))["detectors"]
    assert set(figures) == {d.id for d in DETECTORS}
    for name, entry in figures.items():
        assert entry.keys() & {"faults", "trainings", "structural", "why_not"}, name
        assert entry.keys() & {"logs", "recordings", "why_not"}, name
        assert measured(name)


def test_every_planted_fault_has_a_detector_of_its_own():
    owned = [fault for faults in owners.PLANTED.values() for fault in faults]
    assert sorted(owned) == sorted(f.__name__ for f in (*PLANTED_FAULTS, *MORE_FAULTS))
    assert not owners.WHY_NOT.keys() & (owners.PLANTED.keys() | owners.TRAINED.keys())


@pytest.mark.parametrize("detector", [*CASES])
def test_every_small_training_is_a_function_of_its_script_and_no_other_is_there(detector):
    cases = CASES[detector]
    tree = ast.parse((SCRIPTS / f"{cases.script}.py").read_text(encoding="utf-8"))
    (table,) = (node for node in ast.walk(tree) if isinstance(node, ast.DictComp))
    offered = [name.id for name in table.generators[0].iter.elts]
    assert sorted(offered) == sorted((*cases.faults, *cases.healthy))
    assert {variant for variant, _ in cases.without} <= set(offered)
    assert set(offered) <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_detector_with_small_trainings_exists_and_needs_no_other_excuse():
    assert set(CASES) <= {d.id for d in DETECTORS}
    assert not owners.WHY_NOT.keys() & CASES.keys()


def test_measuring_one_part_keeps_the_figures_of_the_other():
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))["detectors"]
    fresh = {"clipping": {"faults": {}}}
    found = kept({name: {"logs": 1} for name in figures}, fresh)
    assert found["clipping"] == {"logs": 1, KEY: {"faults": {}}}
    assert found["eval_mode"] == {"logs": 1, KEY: figures["eval_mode"][KEY]}
    assert found["spikes"] == {"logs": 1}


def test_a_kind_counts_as_missed_where_no_run_of_it_is_found():
    each = {"a": {"found": 0, "runs": 5}, "b": {"found": 4, "runs": 5}, "c": {"found": 5, "runs": 5}}
    assert cell({"faults": {"runs": 15, "missed": 6, "each": each}}) == "6/15 (1 of 3 kinds)"


def test_the_origin_of_a_nan_counts_only_with_step_and_place():
    def told(message, step):
        return [(None, [Finding("non_finite_origin", Severity.ERROR, "", message, start_step=step)])]

    right = "A value stopped being finite at step 24 in the loss itself."
    assert is_found("non_finite_origin", "empty_mean", told(right, 24))
    assert not is_found("non_finite_origin", "empty_mean", told(right, 25))
    assert not is_found("non_finite_origin", "empty_mean", told("A value stopped being finite at step 24.", 24))
    assert not is_found("clipping", "after_step", told(right, 24))

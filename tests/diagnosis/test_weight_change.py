"""Divergences of weight histograms, against values worked out by hand and against the definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.core.run import Histograms, Run, Series
from trainscope.diagnosis.weight_change import between, divergence

counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=20)


def by_definition(p, q):
    """The same with the shares as fractions."""
    p, q = ([Fraction(2 * c + 1, 2 * sum(counts) + len(counts)) for c in counts] for counts in (p, q))
    return math.fsum(float(a) * math.log(float(a) / float(b)) for a, b in zip(p, q, strict=True))


def test_two_bins_by_hand():
    # (0.5, 9.5) / 10 from (9.5, 0.5) / 10
    expected = 0.05 * math.log(0.05 / 0.95) + 0.95 * math.log(0.95 / 0.05)
    assert divergence(np.array([0, 9]), np.array([9, 0])) == pytest.approx(expected, rel=1e-14)


@given(st.data(), counts)
def test_it_is_the_definition_with_half_a_count_more(data, p):
    q = data.draw(st.lists(st.integers(0, 10_000), min_size=len(p), max_size=len(p)))
    assert divergence(np.array(p), np.array(q)) == pytest.approx(max(by_definition(p, q), 0.0), rel=1e-9, abs=1e-13)


@given(counts)
def test_no_change_is_zero(p):
    assert divergence(np.array(p), np.array(p)) == 0.0


def test_counts_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not negative"):
        divergence(np.array([-1.0, 2.0]), np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match="one shape"):
        divergence(np.array([1.0]), np.array([1.0, 1.0]))


class Layers:
    """Two parameters: one that moves and one that stays; and a module without weights."""

    def __init__(self, edges_move=False):
        self.edges_move = edges_move

    def layers(self):
        return ("still", "moving", "module")

    def metrics(self):
        return ("weight_l2_norm", "grad_l2_norm")

    def series(self, layer, metric):
        if layer == "module":
            return Series(metric, np.zeros(0, np.int64), np.zeros(0))
        step = np.arange(0, 101)
        return Series(metric, step, 1.0 + step * (layer == "moving"))

    def histograms(self, layer):
        if layer == "module":
            return Histograms(np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 1)))
        step = np.array([0, 50, 100])
        moved = np.array([[100, 0, 0], [0, 100, 0], [0, 0, 100]], float)
        held = np.array([[10, 80, 10]] * 3, float)
        edges = np.tile([-1.0, -0.3, 0.3, 1.0], (3, 1))
        if self.edges_move:
            edges = edges * np.array([1, 2, 3])[:, None]
        return Histograms(step, moved if layer == "moving" else held, edges)


def run_of(layers):
    return Run(
        "r", "runs/r", "recorded", {"train/loss": Series("train/loss", np.arange(101), np.ones(101))}, layers=layers
    )


def test_layers_are_ranked_and_say_which_steps_were_compared():
    change = between(run_of(Layers()), 40, 60)
    assert [row.layer for row in change.layers] == ["moving", "still"]
    moving, still = change.layers
    assert (moving.first, moving.last) == (0, 100)
    expected = by_definition([0, 0, 100], [100, 0, 0])
    assert moving.forward == pytest.approx(expected)
    assert moving.symmetric == pytest.approx(2 * expected)
    assert moving.beyond == 1.0
    assert still.symmetric == 0.0
    assert moving.grad_norm == (41.0, 61.0)
    assert moving.grad_ratio == pytest.approx(61 / 41)
    assert change.reason == ""


def test_one_histogram_for_both_steps_gives_no_number():
    change = between(run_of(Layers()), 100, 200)
    assert all(row.symmetric is None for row in change.layers)
    assert change.reason == "has one histogram for both, of step 100 (all 2 parameters)"


def test_other_edges_give_a_reason_and_no_number():
    change = between(run_of(Layers(edges_move=True)), 0, 100)
    assert all(row.symmetric is None for row in change.layers)
    assert "different edges" in change.reason


def test_a_log_has_no_histograms():
    change = between(run_of(None), 0, 100)
    assert change.layers == ()
    assert "no weight histograms" in change.reason


def test_the_later_step_must_be_later():
    with pytest.raises(ValueError, match="not after"):
        between(run_of(None), 5, 5)


def test_weights_that_leave_the_bins_are_seen_where_moving_edges_would_hide_it():
    scaled = np.array([[0, 100, 0], [50, 0, 50]], float)

    class Scaled(Layers):
        def histograms(self, layer):
            return Histograms(np.array([0, 100]), scaled, np.tile([-1.0, -0.3, 0.3, 1.0], (2, 1)))

    assert between(run_of(Scaled()), 0, 100).layers[0].symmetric > 5

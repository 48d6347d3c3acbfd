"""The common fate of runs: bands with known medians and quartiles."""

import numpy as np

from trainscope.core.run import Series
from trainscope.diagnosis.fate import POINTS, common_fate, normalised

from .cases import broken, loss_of, stable


def test_runs_are_aligned_at_their_own_onsets_and_divided_by_their_own_baselines():
    cases = [
        broken("a", signs=(("train/loss", 80, "spikes", None),), loss=loss_of(onset=80, height=4.0)),
        broken("b", signs=(("train/loss", 100, "spikes", None),), loss=loss_of(onset=100, height=6.0, scale=10)),
        broken("c", signs=(("train/loss", 120, "spikes", None),), loss=loss_of(onset=120, height=8.0)),
    ]
    band = common_fate(cases)
    assert band.members == 3
    assert band.offset.tolist() == list(range(-POINTS, POINTS + 1))
    before, at = band.median[POINTS - 1], band.median[POINTS]
    assert (before, at) == (1.0, 3.0)  # of 2, 3 and 4 times the baseline
    assert (band.low[POINTS], band.high[POINTS]) == (2.0, 4.0)
    assert band.runs.tolist() == [3] * len(band.offset)


def test_a_run_that_died_counts_as_above_every_number():
    loss = loss_of(onset=100, height=2.0)
    value = loss.value.copy()
    value[110:] = np.nan
    dead = Series("train/loss", loss.step, value)
    cases = [broken("a", loss=dead), broken("b", loss=dead), broken("c")]
    band = common_fate(cases)
    assert np.isinf(band.median[POINTS + 20])
    assert np.isfinite(band.median[POINTS])


def test_fewer_than_three_runs_make_no_band():
    band = common_fate([broken("a"), broken("b")])
    assert np.isnan(band.low).all()
    assert np.isfinite(band.median).all()


def test_steps_that_nobody_logs_are_empty():
    band = common_fate([broken("a", steps=120)])
    assert np.isnan(band.median[-1])
    assert band.runs[-1] == 0


def test_logs_of_every_tenth_step_are_laid_on_a_coarser_grid():
    signs = (("train/loss", 1000, "spikes", None),)
    cases = [broken(n, signs=signs, loss=loss_of(2000, onset=1000, height=4.0, every=10)) for n in "abc"]
    band = common_fate(cases)
    assert band.offset[1] - band.offset[0] == 10
    assert (band.median[POINTS - 1], band.median[POINTS]) == (1.0, 2.0)


def test_runs_without_a_baseline_are_left_out_by_name():
    early = broken("early", signs=(("train/loss", 2, "spikes", None),))
    negative = broken("negative", loss=loss_of(onset=100, scale=-1.0))
    band = common_fate([early, negative, broken("c")])
    assert band.members == 1
    assert [name for name, _ in band.left_out] == ["early", "negative"]
    assert "2 losses before the onset" in band.left_out[0][1]
    assert "not positive" in band.left_out[1][1]


def test_no_run_at_all_is_an_empty_band():
    band = common_fate([broken("early", signs=(("train/loss", 0, "spikes", None),))])
    assert len(band.offset) == 0
    assert band.members == 0


def test_the_counterexample_is_laid_beside_it():
    offset = np.arange(-POINTS, POINTS + 1)
    assert normalised(stable("s").run, 100, offset).tolist() == [1.0] * len(offset)
    assert np.isnan(normalised(stable("s", steps=3).run, 100, offset)[POINTS:]).all()

"""A second moment that does not keep up is found in the first layer, and only beyond what was there before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .smoke_runs import STEPS, found, ones, single, skipped, smoke_run, with_layers

ID = "stale_moments"


def rms(**layers: object):
    return with_layers(rms_t={name: np.asarray(value) for name, value in layers.items()})


def test_the_first_step_above_everything_before_is_named():
    finding = single(ID, rms(tokens=1.2 + ones(100, 101, 2.0)))
    assert (finding.layer, finding.start_step, finding.end_step) == ("tokens", 100, 100)
    assert finding.evidence == {"value": 3.2, "before": 1.2}


def test_only_the_first_layer_that_has_one_is_judged():
    assert found(ID, rms(tokens=np.ones(STEPS), bias=1.0 + ones(100, 101, 5.0))) == []


def test_what_was_as_high_before_is_nothing_new():
    assert found(ID, rms(tokens=1.0 + ones(80, 81, 1.2) + ones(100, 101, 1.5))) == []


def test_the_first_steps_are_not_judged():
    assert found(ID, rms(tokens=1.0 + ones(20, 21, 9.0) + ones(62, 63, 9.0))) == []


def test_a_rise_within_what_health_reaches_passes():
    assert found(ID, rms(tokens=1.0 + ones(100, 101, 1.2))) == []


def test_several_steps_are_one_finding():
    finding = single(ID, rms(tokens=1.0 + ones(100, 101, 2.0) + ones(120, 121, 4.0)))
    assert "It happened 2 times" in finding.message
    assert (finding.start_step, finding.peak_step, finding.end_step) == (100, 120, 120)


def test_a_run_without_moments_is_skipped():
    assert skipped(ID, replace(smoke_run(), layers=None)).startswith("needs Adam's second moment")
    assert skipped(ID, rms(tokens=np.ones(65))).startswith("needs 11 sampled steps")

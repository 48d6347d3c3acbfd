"""Attention that saturates is named with its layer; a sharp head now and then is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .smoke_runs import STEPS, found, ones, single, skipped, smoke_run, with_layers

ID = "attention_logits"


def logits(**layers: object):
    return with_layers(attn_logit_max={name.replace("_", "."): value for name, value in layers.items()})


def test_the_gravest_layer_is_named_with_its_first_step_and_the_others_are_counted():
    finding = single(ID, logits(a_attn=5.0 + ones(60, value=150.0), b_attn=5.0 + ones(50, value=300.0)))
    assert (finding.layer, finding.start_step, finding.severity.label) == ("b.attn", 50, "warning")
    assert finding.message.endswith("So is another layer.")


def test_a_logit_that_leaves_no_doubt_is_an_error():
    assert single(ID, logits(attn=5.0 + ones(60, value=3620.0))).severity.label == "error"


def test_what_healthy_models_reach_passes():
    assert found(ID, logits(attn=np.full(STEPS, 46.0))) == []


def test_one_sequence_with_a_sharp_head_is_no_collapse():
    assert found(ID, logits(attn=5.0 + ones(60, 64, 500.0))) == []


def test_infinite_logits_are_left_to_another_detector():
    assert found(ID, logits(attn=np.where(np.arange(STEPS) == 70, np.inf, 5.0))) == []


def test_a_run_without_recorded_attention_is_skipped():
    assert skipped(ID, replace(smoke_run(), layers=None)) == "needs attention recorded by the Python recorder"
    assert skipped(ID, logits(attn=np.full(4, 500.0))).startswith("needs 10 sampled steps")

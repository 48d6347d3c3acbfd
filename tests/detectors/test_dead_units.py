"""Units that die are found; layers that were born sparse are not dying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .smoke_runs import STEPS, found, ones, single, skipped, smoke_run, with_layers

ID = "dead_units"


def dead(**layers: object):
    return with_layers(act_dead_fraction={name.replace("_", "."): value for name, value in layers.items()})


def test_the_first_layer_to_die_is_named():
    finding = single(ID, dead(a_relu=0.1 + ones(80, value=0.8), b_relu=0.1 + ones(40, value=0.6)))
    assert finding.layer == "b.relu"
    assert 40 <= finding.start_step < 60
    assert finding.evidence["layers"] == 2
    assert "In layers a.relu, b.relu, up to 90 % of the units are 0" in finding.message
    # Of a Sequential a layer's name is a number, which must not read as a count.
    assert "In layer 1, up to 90 % of the units" in single(ID, dead(**{"1": 0.1 + ones(40, value=0.8)})).message


def test_a_layer_that_was_born_sparse_is_not_dying():
    assert found(ID, dead(relu=np.full(STEPS, 0.6))) == []


def test_units_that_sleep_through_some_batches_are_not_dead():
    assert found(ID, dead(relu=0.1 + ones(60, 69, 0.8))) == []


def test_a_healthy_share_passes():
    assert found(ID, dead(relu=0.05 + ones(40, value=0.2))) == []


def test_a_run_without_recorded_activations_is_skipped():
    assert skipped(ID, replace(smoke_run(), layers=None)) == "needs activations recorded by the Python recorder"
    assert skipped(ID, dead(relu=np.full(5, 0.9))).startswith("needs 20 sampled steps")

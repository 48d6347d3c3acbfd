"""What is recorded is what the tables say, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trainscope.smoke.record import CONFIG, LAYER_METRICS, SERIES

from .conftest import Record, Script, script

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["plain", "two_optimizers", "grad_scaler"])
def test_every_series_and_fact_is_in_the_tables(once: Record, name: str):
    run = once(*script(name)).runs[0]
    assert set(run.series) <= set(SERIES)
    keys = {re.sub(r"(optimizer|scheduler)\d+\.(class|groups|tensors)$", r"\1<i>.\2", key) for key in run.config}
    unknown = {key for key in keys - set(CONFIG) if not re.match(r"smoke\.(optimizer|scheduler)\d+\.", key)}
    assert not unknown
    plain = {key for key in CONFIG if "<" not in key}
    assert plain <= set(run.config)
    assert set(run.layers.metrics()) >= set(LAYER_METRICS)


def test_an_update_over_weights_that_are_still_zero_is_missing(once: Record):
    layers = once(*script("gpt"), "6").runs[0].layers
    bias = next(name for name in layers.layers() if name.endswith("norm.bias"))
    assert layers.series(bias, "weight_l2_norm").value[0] == 0.0
    ratio = layers.series(bias, "update_ratio")
    assert ratio.step[0] == layers.series(bias, "weight_l2_norm").step[1]
    assert np.isfinite(ratio.value).all()


def test_the_same_command_gives_the_same_record(record: Record, warm_script: Script):
    first, second = (record(*warm_script("plain"), seed=1).runs[0] for _ in range(2))
    assert first.config == second.config
    for name in first.series:
        if not re.search(r"time|memory|pace", name):
            assert first.series[name].value.tobytes() == second.series[name].value.tobytes(), name

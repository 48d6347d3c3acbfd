"""Healthy training stays quiet; ``bench/recorder_quiet.py`` does the same for 10 seeds and 1,500 steps."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[2] / "bench"
SHAPE = {"layers": 1, "width": 64, "heads": 2, "length": 64}
"""A fifth of the bench's model; the batches, and with them the noise of the loss, are the bench's."""


@pytest.mark.parametrize("seed", [0, 1])
def test_a_healthy_training_has_no_spike(tmp_path, monkeypatch, seed):
    monkeypatch.syspath_prepend(str(BENCH))
    from recorder_quiet import healthy

    spikes, first, last = healthy(seed, 400, str(tmp_path), shape=SHAPE)
    assert spikes == []
    assert last < first - 1
    assert "recorder_quiet" in sys.modules

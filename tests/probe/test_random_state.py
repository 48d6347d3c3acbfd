import random

import numpy
import pytest

torch = pytest.importorskip("torch")

from trainscope.probe import random_state  # noqa: E402

pytestmark = pytest.mark.slow


def draw():
    return torch.rand(3).tolist(), numpy.random.rand(3).tolist(), random.random(), random.gauss(0, 1)


def test_what_is_put_back_draws_the_same_numbers_again(tmp_path):
    random.gauss(0, 1)
    numpy.random.randn()
    torch.save(random_state.storable(random_state.take()), tmp_path / "state.pkl")
    first = draw()
    random_state.put_back(torch.load(tmp_path / "state.pkl", weights_only=True))
    assert draw() == first


def test_taking_the_state_draws_nothing():
    before = random_state.take()
    random_state.take()
    first = draw()
    random_state.put_back(random_state.storable(before))
    assert draw() == first

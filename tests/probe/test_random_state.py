# ruff: noqa: NPY002
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


def test_the_state_of_numpy_is_the_one_now_whoever_drew_or_did_not():
    order = random.Random(0)
    draws = [
        lambda: None,
        lambda: numpy.random.rand(),
        lambda: numpy.random.randn(),  # leaves a second number waiting, or takes it
        lambda: numpy.random.randn(700),
        lambda: numpy.random.seed(order.randrange(3)),
    ]
    taken = []
    for _ in range(400):
        order.choice(draws)()
        state, expected = random_state.take()["numpy"], numpy.random.get_state()
        assert all(numpy.array_equal(a, b) for a, b in zip(state, expected, strict=True))
        taken.append(id(state))
    assert len(set(taken)) < len(taken), "nobody drew: not taken anew"

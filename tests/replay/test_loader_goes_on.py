"""A skipping loader that begins in the middle, or goes on where another one stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

from trainscope.replay import SkippingDataLoader

from .loaders import Numbers, Stream, seen

pytestmark = pytest.mark.slow


def test_training_goes_on_in_the_middle_of_an_epoch():
    loader = SkippingDataLoader(DataLoader(Numbers(), 4), [26, 31], start=24)
    assert len(loader) == 5
    assert [b[0] for b in seen(loader)] == [16, 20, 28, 32, 36]
    assert loader.position == 30
    assert [b[0] for b in seen(loader)] == [0, 8, 12, 16, 20, 24, 28, 32, 36]


class Endless:
    """A sampler that does not say how long an epoch is."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(40))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Stream(), 4),
        lambda: DataLoader(Numbers(), 4, sampler=Endless()),
        lambda: DataLoader(Numbers(), 4, num_workers=1, sampler=Endless(), persistent_workers=True),
    ],
    ids=["stream", "sampler", "workers"],
)
def test_a_loader_without_a_length_is_wound_forward_over_whole_epochs_too(make):
    loader = SkippingDataLoader(make(), [26, 31], start=24)
    assert [b[0] for b in seen(loader)] == [16, 20, 28, 32, 36]
    assert loader.position == 30
    assert [b[0] for b in seen(loader)] == [0, 8, 12, 16, 20, 24, 28, 32, 36]
    again = SkippingDataLoader(make(), [], start=20)
    assert [b[0] for b in seen(again)] == [*range(0, 40, 4)]


def test_a_generator_that_is_wound_past_its_end_gives_nothing():
    assert seen(SkippingDataLoader(iter([torch.tensor([0])]), [], start=7)) == []


def test_a_start_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError):
        SkippingDataLoader(DataLoader(Numbers(), 4), [], start=1.5)


def test_a_loader_that_was_put_back_is_not_wound_forward():
    rest = iter([torch.tensor([i]) for i in range(4, 10)])
    assert seen(SkippingDataLoader(rest, [5, 6], start=4, seek=False)) == [[4], [7], [8], [9]]


def test_a_state_goes_on_where_it_was_taken():
    whole = seen(SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6]))
    loader = SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6])
    before = [batch.tolist() for _, batch in zip(range(4), loader, strict=False)]
    state = loader.state_dict()
    fresh = SkippingDataLoader(DataLoader(Numbers(), 4), [1, 6])
    fresh.load_state_dict(state)
    assert before + seen(fresh) == whole
    assert state["position"] == 5


def test_the_state_of_a_loader_with_one_of_its_own_is_used():
    class Stateful:
        at = 0

        def __iter__(self):
            while self.at < 10:
                self.at += 1
                yield torch.tensor([self.at - 1])
            self.at = 0

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    loader = SkippingDataLoader(Stateful(), [2, 8])
    before = [batch.tolist() for _, batch in zip(range(4), loader, strict=False)]
    fresh = SkippingDataLoader(Stateful(), [2, 8])
    fresh.load_state_dict(loader.state_dict())
    assert before == [[0], [1], [3], [4]]
    assert seen(fresh) == [[5], [6], [7], [9]]
    assert fresh.position == 10

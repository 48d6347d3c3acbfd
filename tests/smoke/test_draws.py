"""Whether two first steps drew the same dropout masks, told without keeping them."""

from __future__ import annotations

import pytest
import torch

from trainscope.smoke.injected.draws import Draws

pytestmark = pytest.mark.slow


def draws(*shapes: tuple[int, ...], noise: bool = False, rate: float = 0.1) -> Draws:
    """Return what is seen of a first step with dropouts on these shapes."""
    torch.manual_seed(0)
    found = Draws()
    found.begin(anew=False)
    for shape in shapes:
        found.enter(f"dropout {shape} {rate}")
        torch.nn.functional.dropout(torch.ones(shape), rate)
        found.leave()
    if noise:
        torch.rand(1)
    found.end()
    return found


def test_the_same_dropouts_draw_the_same_masks_and_another_order_others():
    assert draws((4, 8), (4, 2)).masks() == draws((4, 8), (4, 2)).masks() is not None
    assert draws((4, 2), (4, 8)).masks() != draws((4, 8), (4, 2)).masks()
    assert draws((4, 8), rate=0.2).masks() != draws((4, 8)).masks()


def test_two_dropouts_that_could_change_places_unseen_are_not_known():
    assert draws((4, 8), (4, 8)).masks() is None


def test_where_other_random_numbers_are_drawn_the_masks_are_not_known():
    assert draws((4, 8), noise=True).masks() is None
    assert draws((4, 8), noise=True).any is True


def test_a_first_step_without_random_numbers_has_no_masks():
    assert (draws().any, draws().masks()) == (False, None)


def test_the_batch_of_a_loader_begins_anew_and_what_follows_the_first_backward_counts_no_more():
    found = Draws()
    found.begin(anew=False)
    torch.rand(1)  # the sampler of the second loader
    found.begin(anew=True)
    assert found.is_open
    found.end()
    torch.rand(1)
    found.end()
    assert (found.any, found.is_open) == (False, False)

"""Which samples are the same, by what the model was given."""

from __future__ import annotations

import pytest
import torch

from trainscope.smoke.injected.rows import Distinct, keys_of

pytestmark = pytest.mark.slow

TOKENS = torch.tensor([[3, 4, 5, 0, 0], [3, 4, 5, 6, 7], [9, 9, 1, 0, 0]])
POSITIONS = torch.arange(5).expand(3, 5)


def test_equal_samples_have_equal_keys():
    found = keys_of([torch.cat([TOKENS, TOKENS])])
    assert found[:3] == found[3:]
    assert len(set(found)) == 3


def test_a_sample_is_known_again_under_more_padding():
    longer = torch.cat([TOKENS, torch.zeros(3, 4, dtype=torch.long)], dim=1)
    assert keys_of([longer])[0] == keys_of([TOKENS])[0]


@pytest.mark.parametrize("beside", [POSITIONS, (TOKENS > 0).long(), torch.ones(3, 5)], ids=["places", "mask", "ones"])
def test_positions_and_masks_are_no_samples_whichever_comes_first(beside):
    assert keys_of([beside, TOKENS]) == keys_of([TOKENS, beside]) == keys_of([TOKENS])


def test_pixels_of_whole_numbers_are_looked_at_all_over_the_image():
    images = torch.zeros(4, 1, 28, 28, dtype=torch.uint8)
    images[:, 0, 14] = torch.arange(1, 5, dtype=torch.uint8)[:, None]  # dark above the middle
    assert len(set(keys_of([images]))) == 4


def test_what_has_no_samples_has_no_keys():
    assert keys_of([]) == []
    assert keys_of([torch.tensor(1.0), torch.empty(0, 4), torch.ones(3, dtype=torch.bool)]) == []


def test_samples_are_counted_by_model_and_known_again_in_evaluation():
    rows = Distinct()
    rows.see(0, keys_of([TOKENS]))
    rows.see(0, keys_of([TOKENS]))
    rows.see(1, [7])
    rows.evaluate([*keys_of([TOKENS])[:2], -1])
    assert rows.counts() == [[6, 3], [1, 1]]
    assert rows.evaluated() == [3, 2]

"""The statistics of a batch are those of a slow loop, whatever the batch is made of."""

from __future__ import annotations

import math
from collections import Counter

import pytest

pytest.importorskip("torch")

import torch

from trainscope.probe.batch_statistics import LONGEST_PERIOD, MOST_TOKENS, Statistic, describe
from trainscope.probe.batch_statistics import entropy as entropy_of
from trainscope.probe.batches import NAMES, BatchColumns, Batches

pytestmark = pytest.mark.slow


def numbers(batch, **options) -> dict[str, float]:
    found = describe(batch, **options)
    assert found is not None
    return {statistic.name: value for statistic, value in zip(Statistic, found.tolist(), strict=True)}


def entropy(tokens: list[int]) -> float:
    return -sum(n / len(tokens) * math.log(n / len(tokens)) for n in Counter(tokens).values())


def repetition(rows: list[list[int]]) -> float:
    def best(row):
        longest = min(LONGEST_PERIOD, len(row) - 1)
        places = range(longest, len(row))
        return max(sum(row[i] == row[i - p] for i in places) / len(places) for p in range(1, longest + 1))

    return sum(map(best, rows)) / len(rows)


def padding(rows: list[list[int]]) -> float:
    def edge(row):
        run = next((i for i, value in enumerate(row) if value != row[0]), len(row))
        return run if run > 1 else 0

    return sum(min(len(row), edge(row) + edge(row[::-1])) / len(row) for row in rows) / len(rows)


@pytest.mark.parametrize("seed", range(8))
def test_tokens_are_counted_as_a_slow_loop_counts_them(seed):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(-2, 3 + 5 * seed, (seed + 1, 6 + 7 * seed), generator=generator)
    found = numbers([tokens, tokens])
    rows = tokens.tolist()
    assert found["SIZE"] == tokens.numel()
    assert found["TOKEN_ENTROPY"] == pytest.approx(entropy(tokens.flatten().tolist()))
    assert found["REPETITION"] == pytest.approx(repetition(rows))
    assert found["PADDING"] == pytest.approx(padding(rows))
    assert math.isnan(found["MEAN"])


def test_garbage_repetition_and_padding_move_what_they_should():
    usual = torch.arange(64).remainder(7).view(1, -1) ** 2 + torch.arange(8).view(-1, 1)
    phrase = torch.tensor([5, 9, 2]).repeat(8, 22)[:, :64]
    padded = usual.clone()
    padded[:, 16:] = 0
    assert numbers([phrase])["REPETITION"] == 1.0
    assert numbers([torch.randint(0, 50_000, (8, 64))])["TOKEN_ENTROPY"] > 6.0 > 4.0 > numbers([usual])["TOKEN_ENTROPY"]
    assert numbers([padded])["PADDING"] == 0.75


def test_an_attention_mask_says_what_is_padding_and_is_no_text():
    ids = torch.randint(5, 900, (4, 32))
    mask = torch.ones(4, 32, dtype=torch.long)
    mask[:, 24:] = 0
    found = numbers({"attention_mask": mask, "labels": ids, "input_ids": ids})
    assert found["PADDING"] == 0.25
    assert found["TOKEN_ENTROPY"] == pytest.approx(entropy(ids.flatten().tolist()))


def test_the_labels_of_a_classifier_are_no_text():
    images, labels = torch.randn(8, 3, 16, 16), torch.arange(8)
    found = numbers([images, labels])
    assert found["MEAN"] == pytest.approx(images.double().mean().item())
    assert found["STD"] == pytest.approx(images.double().std(correction=0).item())
    assert math.isnan(found["TOKEN_ENTROPY"])
    assert found["SIZE"] == images.numel()
    assert describe(labels[:4]) is None


def test_one_nan_is_found_wherever_it_is():
    images = torch.randn(16, 3, 64, 64)
    assert numbers(images)["NON_FINITE"] == 0.0
    images[7, 1, 5, 5] = math.nan
    found = numbers(images)
    assert found["NON_FINITE"] == pytest.approx(1 / images.numel())
    assert math.isfinite(found["MEAN"])
    half = torch.full((4096,), 60_000.0, dtype=torch.float16)
    assert numbers(half)["NON_FINITE"] == 0.0


def test_no_more_than_a_sample_is_looked_at():
    tokens = torch.zeros(1000, 1024, dtype=torch.long)
    tokens[1::250] = torch.randint(0, 50_000, (4, 1024))  # rows that the sample leaves out
    assert numbers([tokens])["SIZE"] == tokens.numel()
    assert numbers([tokens])["TOKEN_ENTROPY"] == pytest.approx(0.0)
    one_row = numbers(torch.randint(0, 2**40, (1, 100_000)))
    assert one_row["TOKEN_ENTROPY"] == pytest.approx(math.log(MOST_TOKENS))


@pytest.mark.parametrize(
    "batch",
    [None, "text", 3, [], {}, ["a", "b"], torch.empty(0), torch.tensor(3.0), torch.ones(4, dtype=torch.bool), [None]],
    ids=repr,
)
def test_what_holds_nothing_to_judge_says_so(batch):
    assert describe(batch) is None


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.float16, torch.bfloat16, torch.float64])
def test_every_kind_of_number_is_read(kind):
    assert describe(torch.ones(4, 20).to(kind)) is not None


def test_it_draws_no_random_number_and_changes_nothing():
    tokens = torch.randint(0, 9, (4, 20))
    before, copy = torch.get_rng_state(), tokens.clone()
    describe([tokens, torch.randn(3, generator=torch.Generator())])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(tokens, copy)


def test_nothing_waits_for_the_device_or_depends_on_a_value():
    from torch.utils._python_dispatch import TorchDispatchMode

    waits = {"_local_scalar_dense", "nonzero", "bincount", "_unique2", "masked_select", "item"}

    seen = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.add(function._opname)
            return function(*args, **(kwargs or {}))

    with Watch():
        describe([torch.randint(0, 9, (8, 40)), torch.randn(8, 4)])
    assert "sort" in seen
    assert not seen & waits


def collected(*inputs):
    batches = Batches()
    for tokens in inputs:
        batches.see(tokens)
    shapes, vectors = batches.collect()
    assert batches.collect() == ([], {})
    return shapes, {name: vector.reshape(-1).double() for name, vector in vectors.items()}


def read(columns, *steps):
    shapes, vectors = zip(*steps, strict=True)
    return columns.of(shapes, vectors)


def test_of_micro_batches_the_recorder_keeps_the_one_farthest_from_usual():
    columns = BatchColumns()
    usual, odd = torch.randint(0, 20, (4, 50)), torch.zeros(4, 50, dtype=torch.long)
    steps = [collected(usual, usual) for _ in range(5)]
    *_, found, nothing = read(columns, *steps, collected(usual, odd, usual), collected())
    assert found["batch/repetition"] == 1.0
    assert found["batch/token_entropy"] == 0.0
    assert set(found) < set(NAMES), "what tokens do not have is left out"
    assert nothing == {}
    assert read(columns, collected()) == [{}]


def test_steps_worked_out_together_have_the_numbers_of_each_alone():
    ids, mask = torch.randint(0, 9, (4, 24)), torch.ones(4, 24, dtype=torch.long)
    mask[:, 18:] = 0
    inputs = [
        *(torch.randint(0, 30, (3, 40)) for _ in range(3)),
        ids,
        {"input_ids": ids, "attention_mask": mask},
        [torch.randint(0, 30, (3, 40)), torch.randn(5, 7)],
        torch.randn(5, 7),
        torch.tensor([[1], [2]]),
        torch.randint(0, 30, (3, 40)),
    ]
    together = read(BatchColumns(), *map(collected, inputs))
    assert len(together) == len(inputs)
    for batch, found in zip(inputs, together, strict=True):
        alone = describe(batch)
        expected = {} if alone is None else dict(zip(NAMES, alone.tolist(), strict=True))
        assert found == pytest.approx({name: value for name, value in expected.items() if value == value})


def test_what_the_training_does_to_its_batch_later_changes_nothing():
    tokens = torch.randint(0, 30, (3, 40))
    expected = describe(tokens).tolist()
    batches = Batches()
    batches.see(tokens)
    tokens.zero_()
    shapes, vectors = batches.collect()
    (found,) = read(BatchColumns(), (shapes, {name: v.reshape(-1).double() for name, v in vectors.items()}))
    assert found == pytest.approx({n: v for n, v in zip(NAMES, expected, strict=True) if v == v})


def test_equal_tokens_have_no_entropy_and_never_less_than_none():
    # Without its bound, rounding leaves -2e-16 for 6, 18, 22, 26, 27, 42 and 46 of them.
    found = [entropy_of(torch.full((1, length), 7)).item() for length in range(1, 64)]
    assert min(found) == 0.0
    assert max(found) < 1e-12

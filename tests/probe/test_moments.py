import math

import pytest

torch = pytest.importorskip("torch")

from trainscope.probe.moments import moments, reduce  # noqa: E402
from trainscope.probe.prepared import PIECE, prepare  # noqa: E402

pytestmark = pytest.mark.slow

SHAPES = [(3,), (300, 200), (), (PIECE + 5,), (4096,), (7, 11, 13), (600, 700)]


def measured(tensors):
    """Reduce tensors, large ones first as the probe orders them."""
    order = sorted(range(len(tensors)), key=lambda i: tensors[i].numel() <= 4096)
    large = sum(t.numel() > 4096 for t in tensors)
    with torch.no_grad():
        (found,), _ = reduce([prepare([tensors[i] for i in order], large)])
    back = torch.tensor(order).argsort()
    return [column[back] for column in (found.squares, found.total, found.low, found.high)]


def expected(tensors):
    wide = [t.double() for t in tensors]
    return [
        torch.stack([t.square().sum() for t in wide]),
        torch.stack([t.sum() for t in wide]),
        torch.stack([t.min() for t in wide]),
        torch.stack([t.max() for t in wide]),
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_four_numbers_are_those_of_a_float64_loop(dtype):
    torch.manual_seed(0)
    tensors = [torch.randn(shape).to(dtype) for shape in SHAPES]
    for got, want in zip(measured(tensors), expected(tensors), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=5e-2)  # single precision, half a million numbers


def test_a_float16_norm_above_65504_does_not_overflow():
    tensors = [torch.full((90_000,), 1000.0, dtype=torch.float16)]
    assert measured(tensors)[0].sqrt().item() == pytest.approx(300_000, rel=1e-4)


def test_mixed_types_are_measured_together():
    tensors = [torch.ones(5000, dtype=torch.bfloat16), torch.ones(6000, dtype=torch.float64), torch.ones(3)]
    assert measured(tensors)[0].tolist() == pytest.approx([5000, 6000, 3])


def test_an_empty_part_is_neutral():
    squares, total, low, high = measured([torch.ones(5000), torch.empty(0), torch.ones(2)])
    assert squares.tolist() == pytest.approx([5000, 0, 2])
    assert total.tolist() == [5000, 0, 2]
    assert (low[1].item(), high[1].item()) == (math.inf, -math.inf)


def test_nan_and_infinity_show_in_small_and_in_large_tensors():
    small, large = torch.ones(10), torch.ones(50_000)
    small[3], large[40_000] = math.nan, math.inf
    squares = measured([small, large])[0].tolist()
    assert math.isnan(squares[0])
    assert squares[1] == math.inf


def test_a_complex_tensor_has_the_norm_of_both_its_parts():
    tensor = torch.complex(torch.full((50, 100), 3.0), torch.full((50, 100), 4.0))
    assert measured([tensor])[0].sqrt().item() == pytest.approx(5 * math.sqrt(5000))


def test_a_sparse_gradient_adds_up_duplicates_and_knows_its_zeros():
    index = torch.tensor([[1, 1, 4]])
    tensor = torch.sparse_coo_tensor(index, torch.tensor([[2.0], [3.0], [7.0]]), (6, 1), check_invariants=True)
    squares, total, low, high = (column.item() for column in measured([tensor]))
    assert (squares, total, low, high) == (25 + 49, 12, 0, 7)


def test_plain_squares_are_those_of_the_moments():
    tensors = [torch.randn(40_000), torch.randn(20)]
    prepared = prepare(tensors, 1)
    (found,), (squares,) = reduce([prepared], [prepared])
    torch.testing.assert_close(squares, found.squares, rtol=1e-6, atol=0)


def test_precise_moments_give_the_variance_of_a_tensor_that_is_nearly_one():
    torch.manual_seed(0)
    tensor = 1 + 1e-4 * torch.randn(10_000)
    found = moments([tensor])
    variance = (found.squares / 10_000 - (found.total / 10_000) ** 2).item()
    assert math.sqrt(variance) == pytest.approx(tensor.double().std().item(), rel=1e-3)


def test_a_transposed_weight_is_followed_without_a_copy():
    """Channels last, for one: a copy that was kept would show the weights of an earlier step for ever."""
    from trainscope.probe.tensors import flatten

    weight = torch.randn(8, 3, 5, 5).to(memory_format=torch.channels_last)
    flat = flatten(weight)
    weight[0, 0, 0, 0] = 1e6
    assert flat.max() == 1e6
    assert flat.numel() == weight.numel()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("odd", [None, math.nan, math.inf, -math.inf])
def test_a_weight_of_a_small_model_is_measured_alike_on_one_thread_and_on_several(threads, odd):
    torch.manual_seed(0)
    tensors = [torch.randn(300, 200) + 0.1, torch.randn(200, 300).T, torch.randn(5000, dtype=torch.float64)]
    if odd is not None:
        tensors[0][7, 7] = odd
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        (found,), _ = reduce([prepare(tensors, 3, whole=True)])
    finally:
        torch.set_num_threads(before)
    for place, tensor in enumerate(tensors):
        numbers = tensor.double()
        want = [numbers.square().sum(), numbers.sum(), numbers.max(), -numbers.min()]
        for got, expected in zip(found.table[:, place].tolist(), want, strict=True):
            assert got == pytest.approx(expected.item(), rel=1e-4, nan_ok=True)

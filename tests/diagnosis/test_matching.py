from __future__ import annotations

from trainscope.core.facts import Parameter
from trainscope.diagnosis.matching import match


def tensors(*names: str, shape: tuple[int, ...] = (8, 4), first: int = 0) -> list[Parameter]:
    return [Parameter(n, shape, first + i, "trained") for i, n in enumerate(names)]


def test_equal_names_match_whatever_the_order():
    assert match(tensors("b", "a"), tensors("a", "b")) == {"a": "a", "b": "b"}


def test_renamed_tensors_match_by_their_first_bytes_whatever_the_order():
    run = [*tensors("y", first=1), *tensors("x", first=0)]
    assert match(run, tensors("a", "b")) == {"a": "x", "b": "y"}


def test_renamed_tensors_of_equal_bytes_match_in_model_order():
    ones = [Parameter(n, (4,), 7, "trained") for n in ("n1", "n2")]
    before = [Parameter(n, (4,), 7, "trained") for n in ("norm_a", "norm_b")]
    assert match(ones, before) == {"norm_a": "n1", "norm_b": "n2"}


def test_another_seed_still_matches_by_shape_and_order():
    assert match(tensors("x", "y", first=50), tensors("a", "b")) == {"a": "x", "b": "y"}


def test_a_name_whose_shape_changed_is_another_tensor():
    assert match(tensors("a", shape=(9, 9)), tensors("a")) == {}


def test_where_the_number_of_a_shape_differs_nothing_is_guessed():
    assert match(tensors("x", "y", "z", first=50), tensors("a", "b")) == {}

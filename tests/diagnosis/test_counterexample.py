"""The nearest stable run, and what the two do differently."""

from math import comb

import pytest

from trainscope.diagnosis.counterexample import MOST, nearest_stable

from .cases import broken, stable


def test_the_nearest_by_settings_is_found_and_the_telling_setting_ranks_first():
    members = [broken(f"b{i}", {"lr": 1e-2, "batch": 32, "opt": "adam"}) for i in range(3)]
    near = stable("near", {"lr": 1e-3, "batch": 64, "opt": "adam"})
    others = [stable(f"s{i}", {"lr": 1e-4, "batch": b, "opt": "sgd"}) for i, b in enumerate((32, 32, 128))]
    found = nearest_stable(members, [near, *others])
    assert found.stable is near
    assert [d.key for d in found.differences] == ["lr", "batch"]
    rate = found.differences[0]
    assert (rate.member, rate.stable) == (1e-2, 1e-3)
    assert (rate.members_alike, rate.stable_alike) == ((3, 3), (0, 4))
    assert rate.p_value == pytest.approx(1 / comb(7, 3))
    # The batch of 32 is on the broken side in two stable runs of four: it explains less.
    assert found.differences[1].stable_alike == (2, 4)
    # lr: half of its two decades; batch: half of the range of logs would need a factor of ten, so (64 - 32) / 96.
    assert found.distance == pytest.approx((0.5 + 1 / 3 + 0) / 3)


def test_a_stable_run_that_stopped_before_the_onset_is_no_counterexample():
    found = nearest_stable([broken("b", {"lr": 1})], [stable("short", {"lr": 1}, steps=50)])
    assert found.stable is None
    assert "as far as step 100" in found.reason


def test_equal_configurations_are_said_to_be_equal():
    found = nearest_stable([broken("b", {"lr": 1, "seed": 1})], [stable("s", {"lr": 1, "seed": 2})])
    assert found.distance == 0.0
    assert found.differences == ()
    assert "the configurations are the same" in found.reason


def test_without_configurations_the_loss_before_the_onset_decides():
    found = nearest_stable([broken("b")], [stable("far", scale=3.0), stable("near")])
    assert found.stable.run.name == "near"
    assert found.distance is None
    assert "no two of these runs have settings" in found.reason


def test_no_stable_run_is_said():
    assert nearest_stable([broken("b")], []).reason == "no stable run to compare with"


def test_of_many_differences_the_most_telling_are_kept():
    found = nearest_stable(
        [broken("b", {f"k{i}": 1 for i in range(40)})], [stable("s", {f"k{i}": 2 for i in range(40)})]
    )
    assert len(found.differences) == MOST
    assert found.more == 40 - MOST


def test_a_setting_that_one_run_lacks_differs():
    found = nearest_stable([broken("b", {"lr": 1, "clip": 1.0})], [stable("s", {"lr": 1})])
    (clip,) = found.differences
    assert (clip.key, clip.member, clip.stable) == ("clip", 1.0, None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308, -1e308, 10**400, "x", True, None])
def test_odd_values_are_compared_without_an_error(value):
    found = nearest_stable([broken("b", {"k": value, "j": 1})], [stable("s", {"k": 3.0, "j": 1})])
    assert found.stable is not None
    assert 0 <= found.distance <= 1

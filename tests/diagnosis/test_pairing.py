from __future__ import annotations

from dataclasses import replace

import numpy as np
from smoke_runs import STEPS, smoke_run

from trainscope.diagnosis.pairing import pair_with, pairing_of

from .runs import log, losses, parameters


def test_the_noise_of_two_logs_tells_whether_they_share_their_batches():
    assert pairing_of(log(losses() + 0.1), log(losses())).exact
    other = pairing_of(log(losses(seed=1)), log(losses(seed=2)))
    # What a log does not say is not claimed: a fault that changes all from the third step on looks like this too.
    assert (other.exact, other.reasons) == (False, ("the losses do not move together, as on other batches",))


def test_the_same_training_under_another_batch_identity_still_pairs():
    base = smoke_run()
    assert pairing_of(smoke_run({"smoke/batch_hash": np.arange(STEPS), "smoke/target_hash": None}), base).exact


def test_one_identity_that_agrees_is_enough():
    """Rescaled inputs have other bytes and the same labels."""
    run = smoke_run({"smoke/batch_hash": np.arange(STEPS), "train/loss": losses() + 1.0})
    assert pairing_of(run, smoke_run()).exact


def test_other_batches_are_named_with_their_first_step():
    hashes = smoke_run().series["smoke/batch_hash"].value.copy()
    hashes[30:] += 1.0
    run = smoke_run({"smoke/batch_hash": hashes, "smoke/target_hash": hashes, "train/loss": losses()})
    assert pairing_of(run, smoke_run()).reasons == ("other batches from step 30 on",)


def test_a_shifted_stream_of_random_numbers_is_named():
    a = smoke_run({"smoke/rng_hash": np.arange(STEPS)})
    b = smoke_run({"smoke/rng_hash": np.arange(STEPS) + (np.arange(STEPS) >= 22), "train/loss": losses()})
    assert pairing_of(b, a).reasons == ("another stream of random numbers from step 22 on",)


def test_another_environment_never_pairs():
    a, b = (smoke_run(env__torch=version) for version in ("2.4.0", "2.5.0"))
    assert pairing_of(b, a).reasons == ("torch: 2.4.0 in the baseline, now 2.5.0",)


def test_what_a_recording_does_not_say_is_taken_to_agree():
    assert pairing_of(smoke_run(env__torch="2.5.0"), replace(smoke_run(), config={})).exact


def test_of_several_baselines_the_one_that_pairs_is_the_partner():
    pair = pair_with(log(losses(seed=3) + 0.1), [log(losses(seed=s)) for s in range(5)])
    assert pair.pairing.exact
    assert np.array_equal(pair.base.series["train/loss"].value, losses(seed=3))


def test_a_new_tensor_or_one_that_is_frozen_now_leaves_the_pair_as_it_is():
    base = smoke_run(parameters=parameters())
    frozen = [[*p[:3], "frozen"] if i == 1 else p for i, p in enumerate(parameters())]
    more = [*parameters(), ["aux.weight", [3, 3], 5, "frozen"]]
    for changed in (frozen, more):
        run = smoke_run({"train/loss": losses()}, parameters=changed, model__initial_hash=99)
        assert pairing_of(run, base).exact
    other = smoke_run({"train/loss": losses()}, parameters=parameters(seed=500))
    assert pairing_of(other, base).reasons == ("other first weights",)


def drifted(first: float, **facts: object):
    """Return a run whose loss and gradients part from step 10 on, by `first` at once and by far more later."""
    base = smoke_run()
    grow = np.zeros(STEPS)
    grow[10:] = first * np.minimum(1.2 ** np.arange(STEPS - 10), 0.02 / first)
    series = {n: base.series[n].value * (1 + grow) for n in ("train/loss", "train/grad_norm")}
    series["optimizer/update_norm"] = np.ones(STEPS)
    return smoke_run(series, **facts), smoke_run({"optimizer/update_norm": np.ones(STEPS)})


def test_a_training_that_amplifies_rounding_is_no_pair():
    assert pairing_of(*drifted(1e-6)).reasons == ("rounding differs from step 10 on and the training amplifies it",)


def test_a_fault_that_acts_at_once_leaves_the_pair_as_it_is():
    assert pairing_of(*drifted(0.02)).exact


def test_a_setting_that_changed_is_never_rounding():
    assert pairing_of(*drifted(1e-6, optimizer0__eps=1e-6)).exact


def test_single_precision_leaves_less_room_for_rounding():
    """A flipped label of a game that hides behind a large reconstruction moves the loss by 6e-5."""
    fine = {"env__dtype": "float32", "env__device": "cpu", "autocast": []}
    run, base = drifted(6e-5, **fine)
    assert pairing_of(run, replace(base, config={**base.config, **run.config})).exact
    assert not pairing_of(*drifted(6e-5)).exact


def drawn(noise: float, level: float = 0.0, **facts: object):
    """A run under dropout whose losses differ from the healthy one's to either side, or all to one."""
    loss = smoke_run().series["train/loss"].value
    other = np.random.default_rng(5).standard_normal(STEPS)
    facts = {"first_step_random": True, "dropout_used": [0.1], **facts}
    return smoke_run({"train/loss": loss + noise * other + level}, **facts)


def test_masks_that_were_drawn_in_another_order_are_no_pair():
    (reason,) = pairing_of(drawn(0.1), drawn(0.0)).reasons
    assert reason == "random numbers of the first step (dropout, noise) drawn in another order"


def test_a_difference_to_one_side_a_setting_and_a_model_without_noise_pair_as_before():
    assert pairing_of(drawn(0.1, level=0.3), drawn(0.0)).exact
    assert pairing_of(drawn(0.1, dropout_used=[0.2]), drawn(0.0)).exact
    assert pairing_of(drawn(0.1, first_step_random=False), drawn(0.0, first_step_random=False)).exact
    assert pairing_of(drawn(1e-7), drawn(0.0)).exact


def test_known_masks_say_for_sure_whether_a_pair_is_one():
    assert not pairing_of(drawn(0.1, level=0.3, first_step_masks=6), drawn(0.0, first_step_masks=5)).exact
    assert pairing_of(drawn(0.1, first_step_masks=5), drawn(0.0, first_step_masks=5)).exact
    assert pairing_of(drawn(1e-7, first_step_masks=6), drawn(0.0, first_step_masks=5)).exact

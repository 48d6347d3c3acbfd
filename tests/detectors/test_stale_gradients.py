from __future__ import annotations

import numpy as np

from .smoke_runs import STEPS, found, ones, single, smoke_run

ID = "stale_gradients"


def test_gradients_left_from_the_step_before_are_found_from_the_first_such_step():
    one = single(ID, smoke_run({"smoke/stale_gradients": ones(1, value=0.5)}))
    assert (one.start_step, one.evidence["steps"]) == (1, STEPS - 1)


def test_clearing_between_micro_batches_throws_gradients_away():
    one = single(ID, smoke_run({"smoke/zero_grad_after_backward": np.ones(STEPS)}))
    assert one.title == "Gradients thrown away"


def test_the_discriminator_of_a_gan_may_throw_away_what_the_generator_left():
    run = smoke_run({"smoke/zero_grad_after_backward": np.ones(STEPS), "smoke/optimizer_steps": np.full(STEPS, 2.0)})
    assert found(ID, run) == []


def test_a_single_step_before_the_loop_is_no_finding():
    assert found(ID, smoke_run({"smoke/stale_gradients": ones(0, 1)})) == []

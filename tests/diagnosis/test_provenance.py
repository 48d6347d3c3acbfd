from __future__ import annotations

import numpy as np
import pytest
from smoke_runs import STEPS, smoke_run

from trainscope.core.run import Run
from trainscope.core.settings import Settings
from trainscope.diagnosis.compare import compare_runs

from .runs import losses

SAME = "Record the baseline with the same seed, data and environment for a sharper comparison."


def drawn(random: int = STEPS, batches: int = STEPS, **facts: object) -> Run:
    """A run whose random numbers and batches are others from these steps on."""
    steps = np.arange(STEPS)
    hashes = smoke_run().series["smoke/batch_hash"].value + (steps >= batches)
    return smoke_run(
        {
            "smoke/rng_hash": 10.0 + steps + 1000.0 * (steps >= random),
            "smoke/batch_hash": hashes,
            "smoke/target_hash": hashes,
            "train/loss": losses(1 if min(random, batches) < STEPS or facts else 0, STEPS),
        },
        **facts,
    )


def remedies(run: Run) -> tuple[str, ...]:
    (one,) = (f for f in compare_runs(run, [drawn()], Settings()).findings if f.title == "Compared with a seed band")
    return one.fixes


@pytest.mark.parametrize(
    "run", [drawn(40, env__world_size=2), drawn(40, model__initial_hash=99), drawn(batches=30), drawn(60, 30)]
)
def test_another_seed_environment_or_data_are_recorded_again(run):
    assert remedies(run) == (SAME,)


def test_a_change_that_draws_other_random_numbers_is_not_sent_for_the_same_seed():
    first, second = remedies(drawn(20, 94))
    assert first.startswith("Random numbers are drawn otherwise from step 20 on; a torch.Generator of the loader's own")
    assert first.endswith("would keep the batches of step 94 on as they were.")
    assert second == "If the change is meant, save a new baseline."
    assert remedies(drawn(20))[0] == "Random numbers are drawn otherwise from step 20 on."

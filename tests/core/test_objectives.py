"""Names of objectives that do not say "loss", and names that say it and are none."""

from __future__ import annotations

import pytest

from trainscope.core.metrics import Kind, canonical, kind


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("G_A", Kind.ADVERSARIAL_LOSS),
        ("D_real", Kind.ADVERSARIAL_LOSS),
        ("errG", Kind.ADVERSARIAL_LOSS),
        ("disc", Kind.ADVERSARIAL_LOSS),
        ("D", Kind.OTHER),
        ("idt_A", Kind.OTHER),
        ("val_bpb", Kind.EVAL_LOSS),
        ("bits_per_dim", Kind.LOSS),
        ("loss scale", Kind.OTHER),
        ("best_val_loss", Kind.OTHER),
        ("act_loss", Kind.RL_LOSS),
        ("q_loss", Kind.RL_LOSS),
        ("value_loss", Kind.RL_LOSS),
        ("average reward score", Kind.REWARD),
        ("rewards/accuracies", Kind.SCORE),
        ("reward_std", Kind.OTHER),
        ("epoch_mean/ObjLoss", Kind.OTHER),
    ],
)
def test_each_name_is_of_its_kind(name: str, wanted: Kind) -> None:
    assert kind(name) is wanted


def test_settings_about_a_loss_claim_no_canonical_name() -> None:
    assert canonical("loss_scale") is None
    assert canonical("best_loss") is None
    assert canonical("Average loss") == "train/loss"

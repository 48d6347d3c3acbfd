from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainscope.core.metrics import CANONICAL, Kind, canonical, canonical_names, is_reinforcement, kind, tokens

# What each framework writes, the canonical name it claims (None: keeps its own), and what it then is.
FRAMEWORKS: dict[str, list[tuple[str, str | None, Kind]]] = {
    "Hugging Face Trainer": [
        ("loss", "train/loss", Kind.LOSS),
        ("train_loss", "train/loss", Kind.LOSS),
        ("eval_loss", "eval/loss", Kind.EVAL_LOSS),
        ("learning_rate", "learning_rate", Kind.LEARNING_RATE),
        ("grad_norm", "train/grad_norm", Kind.GRAD_NORM),
        ("train_samples_per_second", "train/samples_per_second", Kind.RATE),
        ("train_steps_per_second", "train/steps_per_second", Kind.RATE),
        ("eval_samples_per_second", None, Kind.RATE),
        ("eval_runtime", None, Kind.PROGRESS),
        ("train_runtime", None, Kind.PROGRESS),
        ("total_flos", None, Kind.PROGRESS),
        ("eval_accuracy", "eval/accuracy", Kind.SCORE),
        ("epoch", "epoch", Kind.PROGRESS),
    ],
    "TRL": [
        ("rewards/chosen", None, Kind.REWARD),
        ("reward", "train/reward", Kind.REWARD),
        ("reward_std", None, Kind.OTHER),
        ("entropy", None, Kind.OTHER),
        ("kl", None, Kind.OTHER),
    ],
    "LLaMA-Factory": [
        ("lr", "learning_rate", Kind.LEARNING_RATE),
        ("throughput", "train/tokens_per_second", Kind.RATE),
    ],
    "OLMo": [
        ("train/CrossEntropyLoss", "train/loss", Kind.LOSS),
        ("optim/learning_rate_group0", "learning_rate", Kind.LEARNING_RATE),
        ("optim/total_grad_norm", "train/grad_norm", Kind.GRAD_NORM),
        ("throughput/device/tokens_per_second", "train/tokens_per_second", Kind.RATE),
    ],
    "torchtitan": [
        ("loss_metrics/global_avg_loss", None, Kind.LOSS_PART),
        ("grad_norm", "train/grad_norm", Kind.GRAD_NORM),
        ("tps", "train/tokens_per_second", Kind.RATE),
        ("throughput(tps)", "train/tokens_per_second", Kind.RATE),
    ],
    "llm.c": [
        ("trl", "train/loss", Kind.LOSS),
        ("tel", "eval/loss", Kind.EVAL_LOSS),
        ("val loss", "eval/loss", Kind.EVAL_LOSS),
        ("tok/s", "train/tokens_per_second", Kind.RATE),
    ],
    "modded-nanogpt": [("train_loss", "train/loss", Kind.LOSS), ("val_loss", "eval/loss", Kind.EVAL_LOSS)],
    "Lightning": [
        ("train_loss_step", "train/loss", Kind.LOSS),
        ("train_loss_epoch", "train/loss", Kind.LOSS),
        ("val_loss", "eval/loss", Kind.EVAL_LOSS),
        ("lr-AdamW", "learning_rate", Kind.LEARNING_RATE),
        ("val_acc", "eval/accuracy", Kind.SCORE),
    ],
    "detectron2": [
        ("total_loss", "train/loss", Kind.LOSS),
        ("loss_box_reg", None, Kind.LOSS_PART),
        ("loss_rpn_cls", None, Kind.LOSS_PART),
        ("lr", "learning_rate", Kind.LEARNING_RATE),
    ],
    "YOLO": [
        ("train/box_loss", None, Kind.LOSS_PART),
        ("val/box_loss", None, Kind.EVAL_LOSS),
        ("lr/pg0", "learning_rate", Kind.LEARNING_RATE),
        ("metrics/precision(B)", None, Kind.SCORE),
    ],
    "Keras": [
        ("loss", "train/loss", Kind.LOSS),
        ("val_loss", "eval/loss", Kind.EVAL_LOSS),
        ("accuracy", "train/accuracy", Kind.SCORE),
        ("val_accuracy", "eval/accuracy", Kind.SCORE),
    ],
    "Stable-Baselines3": [
        ("train/loss", "train/loss", Kind.LOSS),
        ("train/value_loss", None, Kind.RL_LOSS),
        ("train/policy_gradient_loss", None, Kind.RL_LOSS),
        ("train/entropy_loss", None, Kind.RL_LOSS),
        ("rollout/ep_rew_mean", "train/reward", Kind.REWARD),
        ("train/learning_rate", "learning_rate", Kind.LEARNING_RATE),
        ("time/total_timesteps", None, Kind.OTHER),
    ],
    "AlgoPerf": [("validation/loss", "eval/loss", Kind.EVAL_LOSS), ("ctc_loss", "train/loss", Kind.LOSS)],
    "fairseq": [
        ("gnorm", "train/grad_norm", Kind.GRAD_NORM),
        ("wps", "train/tokens_per_second", Kind.RATE),
        ("ppl", "train/perplexity", Kind.OTHER),
    ],
    "Megatron": [
        ("lm loss", "train/loss", Kind.LOSS),
        ("lm-loss", "train/loss", Kind.LOSS),
        ("learning rate", "learning_rate", Kind.LEARNING_RATE),
        ("grad norm", "train/grad_norm", Kind.GRAD_NORM),
        ("elapsed time per iteration (ms)", "train/step_time_ms", Kind.DURATION),
    ],
    "Stable-Baselines3 A2C": [("train/entropy_loss", None, Kind.RL_LOSS), ("train/policy_loss", None, Kind.RL_LOSS)],
    "timm and torchvision": [
        ("cross_entropy_loss", "train/loss", Kind.LOSS),
        ("val_cross_entropy", "eval/loss", Kind.EVAL_LOSS),
        ("batch_time", "train/step_time", Kind.DURATION),
    ],
    "SpeechBrain": [("train loss", "train/loss", Kind.LOSS), ("valid loss", "eval/loss", Kind.EVAL_LOSS)],
    "CycleGAN and StyleGAN": [
        ("loss_G", None, Kind.ADVERSARIAL_LOSS),
        ("loss_D", None, Kind.ADVERSARIAL_LOSS),
        ("Loss/G/loss", None, Kind.ADVERSARIAL_LOSS),
        ("discriminator_loss", None, Kind.ADVERSARIAL_LOSS),
    ],
    "torch7 and spreadsheets": [
        ("Val Loss(%)", "eval/loss", Kind.EVAL_LOSS),
        ("trainLoss", "train/loss", Kind.LOSS),
        ("testLoss", "eval/loss", Kind.EVAL_LOSS),
        ("Train Acc", "train/accuracy", Kind.SCORE),
    ],
}
TABLE = [(fw, *row) for fw, rows in FRAMEWORKS.items() for row in rows]


@pytest.mark.parametrize(("framework", "raw", "name", "what"), TABLE, ids=[f"{r[0]}: {r[1]}" for r in TABLE])
def test_the_names_of_each_framework_are_understood(framework, raw, name, what):
    assert canonical(raw) == name
    assert kind(canonical_names([raw])[raw]) is what


@pytest.mark.parametrize("name", CANONICAL)
def test_a_canonical_name_stands_for_itself(name):
    assert canonical_names([name]) == {name: name}
    assert kind(name) is CANONICAL[name].kind


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("Val Loss(%)", ("val", "loss")),
        ("trainLossEMA", ("train", "loss", "ema")),
        ("lr-AdamW/pg_1", ("lr", "adam", "w", "pg", "1")),
        ("time [s]", ("time",)),
        ("损失", ()),
        ("", ()),
    ],
)
def test_a_name_is_split_into_words(raw, words):
    assert tokens(raw) == words


@pytest.mark.parametrize(
    ("raw", "counts", "winner"),
    [
        (["train_loss_epoch", "train_loss_step"], {"train_loss_epoch": 10, "train_loss_step": 500}, "train_loss_step"),
        (["test_loss", "val_loss"], {}, "val_loss"),
        (["avg_loss", "loss"], {"avg_loss": 100, "loss": 100}, "loss"),
        (["loss", "train_loss"], {"loss": 100, "train_loss": 1}, "loss"),  # a summary row at the end
        (["lr-AdamW", "lr"], {}, "lr"),
    ],
)
def test_of_two_names_for_one_thing_the_plainer_or_the_denser_wins(raw, counts, winner):
    (target,) = {canonical(name) for name in raw}
    names = canonical_names(raw, counts)
    assert [name for name in raw if names[name] == target] == [winner]
    assert all(names[name] == name for name in raw if name != winner)


def test_a_loser_whose_own_name_is_taken_gets_a_number():
    names = canonical_names(["train/loss", "loss"], {"train/loss": 1, "loss": 100})
    assert names == {"train/loss": "train/loss_2", "loss": "train/loss"}


RAW = st.lists(
    st.one_of(
        st.sampled_from([row[1] for row in TABLE]),
        st.sampled_from(["train/loss_2", "loss_2", "eval/loss", "train/loss", "eval/loss_2", "Loss", "LOSS"]),
        st.text(max_size=12),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(RAW, st.dictionaries(st.sampled_from([row[1] for row in TABLE]), st.integers(0, 1000)))
def test_no_name_is_lost_and_none_is_given_twice(raw, counts):
    names = canonical_names(raw, counts)
    assert set(names) == set(raw)
    assert len(set(names.values())) == len(names)


@pytest.mark.slow
@settings(max_examples=100)
@given(RAW)
def test_the_order_of_the_columns_does_not_decide_who_wins(raw):
    def winners(order: list[str]) -> dict[str, str]:
        return {r: n for r, n in canonical_names(order).items() if canonical(r) == n}

    assert winners(raw) == winners(raw[::-1])


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_any_text_has_a_kind(text):
    assert isinstance(kind(text), Kind)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train/loss", "train/reward"], True),
        (["loss", "rollout/ep_len_mean"], True),
        (["loss", "completions/mean_length"], True),
        (["loss", "rewards/chosen", "rewards/rejected"], False),  # preference optimisation
        (["loss", "eval_loss", "grad_norm"], False),
        ([], False),
    ],
)
def test_reinforcement_learning_is_told_from_preference_optimisation(names, expected):
    assert is_reinforcement(names) is expected


def test_a_cost_is_the_loss_where_nothing_else_is():
    assert canonical_names(["cost", "accuracy"])["cost"] == "train/loss"
    assert canonical_names(["Average cost", "val cost"]) == {"Average cost": "train/loss", "val cost": "eval/loss"}
    assert canonical_names(["Cost", "eval/cross-entropy"])["Cost"] == "train/loss"


@pytest.mark.parametrize("beside", ["loss", "reward", "policy_loss"])
def test_a_cost_beside_a_loss_or_a_reward_is_something_else(beside):
    assert canonical_names(["cost", beside])["cost"] == "cost"


@pytest.mark.parametrize("name", ["time cost", "cost_usd", "token cost", "cost per step"])
def test_what_costs_time_or_money_is_no_loss(name):
    assert canonical_names([name])[name] == name

"""The words and spellings by which logs name their metrics; the rules over them are in :mod:`trainscope.core.metrics`.

A name is compared as lower-case words: ``"Val Loss(%)"`` is ``val loss``.
"""

from __future__ import annotations

from collections.abc import Mapping

TRAIN = frozenset({"train", "training", "trn", "tr"})
EVAL = frozenset({"eval", "evaluation", "val", "valid", "validation", "dev", "heldout"})
TEST = frozenset({"test", "testing"})
SIDES = TRAIN | EVAL | TEST
LOSS = frozenset({"loss", "losses", "nll", "crossentropy", "crossentropyloss", "ce", "celoss", "logloss", "mlogloss"})
REWARD = frozenset({"reward", "rewards", "return", "returns", "rew", "eprewmean"})
NO_REWARD = frozenset({"std", "accuracy", "accuracies", "acc"})
"""Words that make a reward something else: its spread, how often the better answer got the larger one."""
AVERAGED = frozenset({"avg", "average", "ema", "smooth", "smoothed", "mean", "global", "epoch", "running"})
"""Words of a loss that is not of one step: it yields its canonical name to a plainer one."""

# A word a line would hide the groups.
# fmt: off
SCORE = frozenset({
    "accuracy", "acc", "accuracies", "f1", "bleu", "rouge", "map", "auc", "precision", "recall", "iou", "miou",
    "dice", "ssim", "psnr", "top1", "top5", "score", "r2",
})
RL_LOSS = frozenset({
    "policy", "value", "critic", "actor", "pg", "vf", "pi", "entropy", "kl", "ppo", "advantage", "surrogate",
    "gail", "approxkl", "td", "qf", "q", "qf1", "qf2", "q1", "q2", "act", "cri", "ent",
})
GAN_LOSS = frozenset({
    "g", "d", "gen", "gan", "disc", "generator", "discriminator", "adv", "adversarial", "fake", "real", "dis",
})
WHOLE = frozenset({
    "lm", "total", "batch", "minibatch", "set", "step", "iter", "tot", "cross", "objective", "model", "mean", "avg",
    "ctc", "mlm", "clm", "mse", "bce", "huber",
})
"""Words beside "loss" that still mean the whole objective, not one part of it."""
PROGRESS = frozenset({
    "epoch", "epochs", "runtime", "timestamp", "time", "walltime", "date", "iteration", "iter", "iters", "steps",
    "samples", "tokens", "flos", "percentage", "eta", "remaining", "elapsed", "duration", "count", "num", "seen",
    "examples", "index",
})
OPTIMIZER = frozenset({
    "optim", "optimizer", "param", "group0", "pg0", "adamw", "adam", "w", "sgd", "muon", "throughput", "device",
    "perf",
})
"""Words that only say where a learning rate or a gradient norm was taken."""
RL_SIGNS = frozenset({
    "reward", "rewards", "advantage", "advantages", "rollout", "policy", "completions", "returns", "episode", "rew",
    "eprewmean",
})
"""One of these in any name of a log makes it one of reinforcement learning."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "train/grad_norm": (
        "grad norm", "gradient norm", "gnorm", "gn", "gradnorm", "total grad norm", "global grad norm",
        "grad norm total", "grad 2 0 norm total", "grad l2 norm", "grad norm before clip", "norm",
    ),
    "learning_rate": ("lr", "learning rate", "learningrate", "current lr", "current learning rate"),
    "train/step_time": (
        "step time", "time per step", "sec per step", "seconds per step", "iter time", "iteration time", "batch time",
        "elapsed time per iteration",
    ),
    "train/step_time_ms": ("step time ms", "iteration time ms"),
    "train/tokens_per_second": (
        "tokens per second", "tokens per sec", "tok s", "tps", "wps", "throughput", "throughput tps", "tgs",
    ),
    "train/samples_per_second": ("samples per second", "examples per second", "samples sec"),
    "train/steps_per_second": ("steps per second", "it s"),
    "train/rollout_logprob_difference": (
        "sampling sampling logp difference mean", "rollout logprob abs diff", "debug vllm vs local logprob diff mean",
        "vllm vs local logprob diff mean",
    ),
    "epoch": ("epoch",),
}
"""Canonical name to the spellings that claim it, beside a word for the training side or of ``OPTIMIZER``."""
# fmt: on

EXACT: Mapping[str, str] = {spelling: name for name, all_of in SPELLINGS.items() for spelling in all_of}
SIDED: Mapping[str, str] = {"accuracy": "accuracy", "acc": "accuracy", "perplexity": "perplexity", "ppl": "perplexity"}
"""Spelling to what stands after ``train/`` or ``eval/``."""
REWARDS = frozenset({
    "reward", "mean reward", "average reward", "episode reward", "ep rew mean", "rollout ep rew mean", "eprewmean",
    "ep reward mean", "episode return", "mean episode reward", "average reward score",
    "mean total reward", "objective scores", "critic score mean", "ppo mean scores",
})  # fmt: skip
"""Spellings of ``train/reward``. A reward less its KL penalty, as RLHF logs it beside the score, is none of them."""

BATCH: Mapping[str, tuple[str, str]] = {
    "count": ("1", "batches that the training loader gave for the step"),
    "size": ("1", "numbers in the batch: tokens, or else floating-point numbers"),
    "token_entropy": ("nat", "entropy of the batch's own token distribution"),
    "repetition": ("1", "share of tokens that repeat with one period of up to 13; best of each row, mean over rows"),
    "padding": ("1", "share of masked tokens, or of tokens in a constant run at an end of their row"),
    "mean": ("1", "mean of the largest floating-point tensor of the batch"),
    "std": ("1", "standard deviation of the same"),
    "non_finite": ("1", "share of NaN and infinity in the same"),
}
"""What a batch looks like before the forward, as ``batch/<name>``: unit and meaning."""

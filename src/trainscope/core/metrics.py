"""Canonical metric names, and what kind of quantity each name stands for.

Every framework spells its metrics in its own way. A reader hands the raw names of one log to
:func:`canonical_names`; detectors ask :func:`kind` what a series is and so whether they may judge it.
Unknown names pass through untouched.

Canonical names (``group/name``; the unit is here and never in the name)
    ``train/loss``               the training objective, nat per token or the task's own unit
    ``eval/loss``                the same on held-out data
    ``train/grad_norm``          global L2 norm of the gradient, before clipping where the log has it
    ``learning_rate``            of the first parameter group
    ``train/step_time``          seconds per optimizer step
    ``train/tokens_per_second``  tokens per second, all devices or one, as logged
    ``train/samples_per_second`` samples per second
    ``train/steps_per_second``   optimizer steps per second
    ``train/accuracy``, ``eval/accuracy``, ``train/perplexity``, ``eval/perplexity``
    ``train/reward``             mean episode or batch reward, higher is better
    ``epoch``                    epochs done, fractional
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """What a series measures; decides which detectors may judge it."""

    LOSS = "loss"
    """A training objective that should fall."""
    EVAL_LOSS = "eval_loss"
    """A loss on held-out data."""
    LOSS_PART = "loss_part"
    """One summand of a training objective."""
    ADVERSARIAL_LOSS = "adversarial_loss"
    """Generator or discriminator loss: moves with its opponent, need not fall."""
    RL_LOSS = "rl_loss"
    """Policy, value or entropy loss: may be 0 by construction or grow with the returns."""
    GRAD_NORM = "grad_norm"
    LEARNING_RATE = "learning_rate"
    DURATION = "duration"
    """Seconds per step: higher is slower."""
    RATE = "rate"
    """Tokens, samples or steps per second: lower is slower."""
    SCORE = "score"
    """Accuracy, F1, BLEU: higher is better."""
    REWARD = "reward"
    """Reward or episode return: higher is better."""
    PROGRESS = "progress"
    """Epoch, clock, counters: no quality."""
    OTHER = "other"


LOSS_KINDS = frozenset({Kind.LOSS, Kind.EVAL_LOSS, Kind.LOSS_PART, Kind.ADVERSARIAL_LOSS, Kind.RL_LOSS})

_UNIT = re.compile(r"\s*[\(\[][^\)\]]*[\)\]]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[^a-z0-9]+")

_TRAIN = frozenset({"train", "training", "trn", "tr"})
_EVAL = frozenset({"eval", "evaluation", "val", "valid", "validation", "dev", "heldout"})
_TEST = frozenset({"test", "testing"})
_LOSS = frozenset({"loss", "losses", "nll", "crossentropy", "crossentropyloss", "ce", "celoss"})
_SCORE = frozenset(
    [
        "accuracy",
        "acc",
        "accuracies",
        "f1",
        "bleu",
        "rouge",
        "map",
        "auc",
        "precision",
        "recall",
        "iou",
        "miou",
        "dice",
        "ssim",
        "psnr",
        "top1",
        "top5",
        "score",
        "r2",
    ]
)
_REWARD = frozenset({"reward", "rewards", "return", "returns", "rew"})
_RL_LOSS = frozenset(
    [
        "policy",
        "value",
        "critic",
        "actor",
        "pg",
        "vf",
        "pi",
        "entropy",
        "kl",
        "ppo",
        "advantage",
        "surrogate",
        "gail",
        "approxkl",
        "td",
        "qf",
    ]
)
_GAN_LOSS = frozenset(
    [
        "g",
        "d",
        "gen",
        "gan",
        "disc",
        "generator",
        "discriminator",
        "adv",
        "adversarial",
        "fake",
        "real",
        "dis",
    ]
)
_AVERAGED = frozenset({"avg", "ema", "smooth", "smoothed", "mean", "global", "epoch", "running"})
_WHOLE = frozenset(
    [
        "lm",
        "total",
        "batch",
        "step",
        "iter",
        "tot",
        "cross",
        "entropy",
        "objective",
        "model",
        "mean",
        "avg",
        "ctc",
        "mlm",
        "clm",
        "mse",
        "bce",
        "huber",
    ]
)
_PROGRESS = frozenset(
    [
        "epoch",
        "epochs",
        "runtime",
        "timestamp",
        "time",
        "walltime",
        "date",
        "iteration",
        "iter",
        "iters",
        "steps",
        "samples",
        "tokens",
        "flos",
        "percentage",
        "eta",
        "remaining",
        "elapsed",
        "duration",
        "count",
        "num",
        "seen",
        "examples",
        "index",
    ]
)


@lru_cache(maxsize=4096)
def tokens(raw: str) -> tuple[str, ...]:
    """Split a raw name into lower-case words, without a unit in brackets: ``"Val Loss(%)"`` -> val, loss."""
    plain = _CAMEL.sub(" ", _UNIT.sub("", raw))
    return tuple(t for t in _SPLIT.split(plain.lower()) if t)


def _side(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Split off the word that says which data: (train | eval | test | None, the other words)."""
    for group, known in (("eval", _EVAL), ("test", _TEST), ("train", _TRAIN)):
        if any(w in known for w in words):
            return group, tuple(w for w in words if w not in known)
    return None, words


def _is_loss(rest: tuple[str, ...]) -> bool:
    return any(w in _LOSS for w in rest) or rest[:2] == ("cross", "entropy") or rest in {("trl",), ("tel",)}


def _loss_name(side: str | None, rest: tuple[str, ...]) -> str | None:
    """Name for a plain loss (no component word), None for a component."""
    extra = [w for w in rest if w not in _LOSS and w not in _WHOLE and not w.isdigit()]
    if extra and not all(w in _AVERAGED for w in extra):
        return None
    return "eval/loss" if side in ("eval", "test") else "train/loss"


_EXACT: Mapping[tuple[str, ...], str] = {
    ("grad", "norm"): "train/grad_norm",
    ("gradient", "norm"): "train/grad_norm",
    ("gnorm",): "train/grad_norm",
    ("gn",): "train/grad_norm",
    ("gradnorm",): "train/grad_norm",
    ("total", "grad", "norm"): "train/grad_norm",
    ("global", "grad", "norm"): "train/grad_norm",
    ("grad", "l2", "norm"): "train/grad_norm",
    ("grad", "norm", "before", "clip"): "train/grad_norm",
    ("lr",): "learning_rate",
    ("learning", "rate"): "learning_rate",
    ("learningrate",): "learning_rate",
    ("step", "time"): "train/step_time",
    ("time", "per", "step"): "train/step_time",
    ("sec", "per", "step"): "train/step_time",
    ("seconds", "per", "step"): "train/step_time",
    ("iter", "time"): "train/step_time",
    ("iteration", "time"): "train/step_time",
    ("batch", "time"): "train/step_time",
    ("elapsed", "time", "per", "iteration"): "train/step_time",
    ("step", "time", "ms"): "train/step_time_ms",
    ("tokens", "per", "second"): "train/tokens_per_second",
    ("tokens", "per", "sec"): "train/tokens_per_second",
    ("tok", "s"): "train/tokens_per_second",
    ("tps",): "train/tokens_per_second",
    ("wps",): "train/tokens_per_second",
    ("throughput",): "train/tokens_per_second",
    ("throughput", "tps"): "train/tokens_per_second",
    ("samples", "per", "second"): "train/samples_per_second",
    ("examples", "per", "second"): "train/samples_per_second",
    ("steps", "per", "second"): "train/steps_per_second",
    ("it", "s"): "train/steps_per_second",
    ("epoch",): "epoch",
}
_SIDED: Mapping[tuple[str, ...], str] = {
    ("accuracy",): "accuracy",
    ("acc",): "accuracy",
    ("perplexity",): "perplexity",
    ("ppl",): "perplexity",
}


def _optimizer_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the words that only say where a learning rate or gradient norm was taken."""
    drop = _TRAIN | {
        "optim",
        "optimizer",
        "param",
        "group0",
        "pg0",
        "adamw",
        "adam",
        "w",
        "sgd",
        "muon",
        "throughput",
        "device",
        "perf",
    }
    kept = tuple(w for w in words if w not in drop)
    return kept if kept else words


@lru_cache(maxsize=4096)
def canonical(raw: str) -> str | None:
    """Return the canonical name that `raw` claims, None if it claims none.

    Several raw names of one log may claim one canonical name: :func:`canonical_names` decides.
    """
    words = tokens(raw)
    side, rest = _side(words)
    if not rest:
        return {"eval": "eval/loss", "train": "train/loss"}.get(side or "") if len(words) == 1 else None
    if side not in ("eval", "test"):
        bare = _optimizer_words(words)
        while bare and bare[-1].isdigit():
            bare = bare[:-1]
        if bare in _EXACT:
            return _EXACT[bare]
    if rest in _SIDED:
        return f"{'eval' if side in ('eval', 'test') else 'train'}/{_SIDED[rest]}"
    if _is_loss(rest):
        if rest == ("tel",):
            return "eval/loss"
        return _loss_name(side, rest)
    if side in (None, "train") and rest in {
        ("reward",),
        ("mean", "reward"),
        ("episode", "reward"),
        ("ep", "rew", "mean"),
        ("rollout", "ep", "rew", "mean"),
    }:
        return "train/reward"
    return None


def _rank(raw: str) -> tuple[int, int, str]:
    """Order claims on one canonical name: plain before averaged, validation before test, short first."""
    words = tokens(raw)
    bare = len(words) == 1 and words[0] in _TRAIN | _EVAL
    penalty = 3 * bare + 2 * any(w in _TEST for w in words) + any(w in _AVERAGED or w in _WHOLE for w in words)
    return (penalty, len(words), raw)


def canonical_names(raw: Sequence[str], counts: Mapping[str, int] | None = None) -> dict[str, str]:
    """Map every raw name of one log to the name its series gets.

    Parameters
    ----------
    raw : sequence of str
        The metric names as logged.
    counts : mapping, optional
        Number of points of each. Of two names that claim ``train/loss``, the one with more than twice
        the points wins (a per-step loss over a per-epoch one); else the plainer name wins.

    Returns
    -------
    dict of str to str
        One distinct name for each raw name. A name that lost its claim keeps its raw spelling, with
        ``_2``, ``_3``... appended only where that is taken.
    """
    counts = counts or {}
    claims: dict[str, list[str]] = {}
    for name in dict.fromkeys(raw):
        target = canonical(name)
        if target is not None:
            claims.setdefault(target, []).append(name)
    names: dict[str, str] = {}
    for target, claimants in claims.items():
        most = max(counts.get(name, 0) for name in claimants)
        enough = [name for name in claimants if 2 * counts.get(name, 0) >= most]
        names[min(enough, key=_rank)] = target
    taken = set(names.values())
    for name in dict.fromkeys(raw):
        if name in names:
            continue
        candidate, n = name, 1
        while candidate in taken:
            n += 1
            candidate = f"{name}_{n}"
        names[name] = candidate
        taken.add(candidate)
    return names


@lru_cache(maxsize=4096)
def kind(name: str) -> Kind:
    """Return what kind of quantity a (canonical or raw) metric name stands for."""
    words = tokens(name)
    side, rest = _side(words)
    fixed = {
        "train/grad_norm": Kind.GRAD_NORM,
        "learning_rate": Kind.LEARNING_RATE,
        "train/step_time": Kind.DURATION,
        "train/step_time_ms": Kind.DURATION,
        "train/tokens_per_second": Kind.RATE,
        "train/samples_per_second": Kind.RATE,
        "train/steps_per_second": Kind.RATE,
        "train/reward": Kind.REWARD,
        "epoch": Kind.PROGRESS,
    }.get(name)
    if fixed is not None:
        return fixed
    if _is_loss(rest):
        return _loss_kind(side, rest)
    if ("per" in words or words[-1:] == ("s",)) and words[-1:] in {("second",), ("sec",), ("s",)}:
        return Kind.RATE
    if words[-2:] == ("grad", "norm"):
        return Kind.GRAD_NORM
    if words[:1] == ("lr",) or "lr" in words[-2:] or words[-2:] == ("learning", "rate"):
        return Kind.LEARNING_RATE
    if any(w in _SCORE for w in words):
        return Kind.SCORE
    if any(w in _REWARD for w in words) and "std" not in words:
        return Kind.REWARD
    if words and all(w in _PROGRESS | _TRAIN | _EVAL | _TEST | {"total", "global", "max"} for w in words):
        return Kind.PROGRESS
    return Kind.OTHER


def _loss_kind(side: str | None, rest: tuple[str, ...]) -> Kind:
    if any(w in _RL_LOSS for w in rest) and rest[:2] != ("cross", "entropy"):
        return Kind.RL_LOSS
    if any(w in _GAN_LOSS for w in rest):
        return Kind.ADVERSARIAL_LOSS
    if side in ("eval", "test"):
        return Kind.EVAL_LOSS
    return Kind.LOSS if _loss_name(side, rest) else Kind.LOSS_PART


_RL_SIGNS = frozenset(
    ["reward", "rewards", "advantage", "advantages", "rollout", "policy", "completions", "returns", "episode"]
)


def is_reinforcement(names: Sequence[str]) -> bool:
    """Tell whether a log is of reinforcement learning, where the loss need not fall.

    Preference optimisation (DPO and its kin log ``rewards/chosen``) is not: its loss should fall.
    """
    if any(tokens(name)[-2:] == ("rewards", "chosen") for name in names):
        return False
    return any(w in _RL_SIGNS for name in names for w in tokens(name))

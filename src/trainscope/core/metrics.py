"""Canonical metric names, and what kind of quantity each name stands for.

A reader hands the raw names of one log to :func:`canonical_names`; detectors ask :func:`kind` what a series is
and so whether they may judge it. Unknown names pass through untouched. ``CANONICAL`` lists the canonical names
(``group/name``; the unit is there and never in the name).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from trainscope.core import objectives, vocabulary


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
    """Norm of the gradient, of all parameters or of some."""
    LEARNING_RATE = "learning_rate"
    """Of any parameter group."""
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
    """Anything else; judged for NaN and infinity only."""


LOSS_KINDS = frozenset({Kind.LOSS, Kind.EVAL_LOSS, Kind.LOSS_PART, Kind.ADVERSARIAL_LOSS, Kind.RL_LOSS})

_UNIT = re.compile(r"\s*[\(\[][^\)\]]*[\)\]]")
_MILLISECONDS = re.compile(r"[\(\[]\s*ms\s*[\)\]]", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """What a canonical name stands for."""

    kind: Kind
    unit: str
    meaning: str


CANONICAL: Mapping[str, Metric] = {
    "train/loss": Metric(Kind.LOSS, "nat per token, or the task's own", "the training objective"),
    "eval/loss": Metric(Kind.EVAL_LOSS, "as train/loss", "the same on held-out data"),
    "train/grad_norm": Metric(
        Kind.GRAD_NORM, "as logged", "global L2 norm of the gradient, before clipping where the log has it"
    ),
    "learning_rate": Metric(Kind.LEARNING_RATE, "1", "learning rate of the first parameter group"),
    "train/step_time": Metric(Kind.DURATION, "s", "time of one optimizer step"),
    "train/step_time_ms": Metric(Kind.DURATION, "ms", "the same, where the log has milliseconds"),
    "train/tokens_per_second": Metric(Kind.RATE, "1/s", "tokens a second, of all devices or of one, as logged"),
    "train/samples_per_second": Metric(Kind.RATE, "1/s", "samples a second"),
    "train/steps_per_second": Metric(Kind.RATE, "1/s", "optimizer steps a second"),
    "train/accuracy": Metric(Kind.SCORE, "as logged", "accuracy on training data"),
    "eval/accuracy": Metric(Kind.SCORE, "as logged", "accuracy on held-out data"),
    "train/perplexity": Metric(Kind.OTHER, "1", "perplexity on training data"),
    "eval/perplexity": Metric(Kind.OTHER, "1", "perplexity on held-out data"),
    "train/reward": Metric(Kind.REWARD, "as logged", "mean reward of an episode or batch, higher is better"),
    "train/rollout_logprob_difference": Metric(Kind.OTHER, "nat", "mean |log p of sampler - of trainer|, same tokens"),
    "batch_index": Metric(Kind.PROGRESS, "1", "position of the step's first batch in the loader, over all epochs"),
    **{f"batch/{name}": Metric(Kind.OTHER, unit, meaning) for name, (unit, meaning) in vocabulary.BATCH.items()},
    "epoch": Metric(Kind.PROGRESS, "1", "epochs done, fractional"),
}
"""Every canonical name, in the order of the documentation."""


@lru_cache(maxsize=4096)
def tokens(raw: str) -> tuple[str, ...]:
    """Split a raw name into lower-case words, without a unit in brackets: ``"Val Loss(%)"`` -> val, loss."""
    plain = _CAMEL.sub(" ", _UNIT.sub("", raw))
    return tuple(t for t in _SPLIT.split(plain.lower()) if t)


def _side(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Split off the word that says which data: (train | eval | test | None, the other words)."""
    for group, known in (("eval", vocabulary.EVAL), ("test", vocabulary.TEST), ("train", vocabulary.TRAIN)):
        if any(w in known for w in words):
            return group, tuple(w for w in words if w not in known)
    return None, words


def _is_loss(rest: tuple[str, ...]) -> bool:
    return any(w in vocabulary.LOSS for w in rest) or rest[:2] == ("cross", "entropy") or rest in {("trl",), ("tel",)}


def _loss_name(side: str | None, rest: tuple[str, ...]) -> str | None:
    """Name for a plain loss (no component word), None for a component."""
    whole = vocabulary.WHOLE | ({"entropy"} if "cross" in rest else set())
    extra = [w for w in rest if w not in vocabulary.LOSS and w not in whole and not w.isdigit()]
    if extra and not all(w in vocabulary.AVERAGED for w in extra):
        return None
    return "eval/loss" if side in ("eval", "test") else "train/loss"


def _optimizer_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the words that only say where a learning rate or gradient norm was taken."""
    return tuple(w for w in words if w not in vocabulary.TRAIN and w not in vocabulary.OPTIMIZER) or words


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
        if " ".join(bare) in vocabulary.EXACT:
            name = vocabulary.EXACT[" ".join(bare)]
            return "train/step_time_ms" if name == "train/step_time" and _MILLISECONDS.search(raw) else name
    if " ".join(rest) in vocabulary.SIDED:
        return f"{'eval' if side in ('eval', 'test') else 'train'}/{vocabulary.SIDED[' '.join(rest)]}"
    if _is_loss(rest) and not objectives.is_about_loss(rest):
        return {"trl": "train/loss", "tel": "eval/loss"}.get(" ".join(rest)) or _loss_name(side, rest)
    if side in (None, "train") and " ".join(rest) in vocabulary.REWARDS:
        return "train/reward"
    return _loss_name(side, ()) if objectives.is_cost(rest) else None


def _rank(raw: str) -> tuple[int, int, str]:
    """Order claims on one canonical name: plain before averaged, validation before test, short first."""
    words = tokens(raw)
    bare = len(words) == 1 and words[0] in vocabulary.TRAIN | vocabulary.EVAL
    penalty = (
        3 * bare
        + 2 * any(w in vocabulary.TEST for w in words)
        + any(w in vocabulary.AVERAGED or w in vocabulary.WHOLE for w in words)
    )
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
    judged = any(kind(name) in LOSS_KINDS - {Kind.EVAL_LOSS} | {Kind.REWARD} for name in raw)
    for name in dict.fromkeys(raw):
        target = canonical(name)  # beside a loss or a reward, a cost is money, time or a constraint
        if target is not None and not (judged and objectives.is_cost(_side(tokens(name))[1])):
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
    if name in CANONICAL:
        return CANONICAL[name].kind
    if objectives.is_epoch_mean(words) or (_is_loss(rest) and objectives.is_about_loss(rest)):
        return Kind.OTHER
    if _is_loss(rest):
        return _loss_kind(side, rest)
    if objectives.is_bits(rest):
        return Kind.EVAL_LOSS if side in ("eval", "test") else Kind.LOSS
    if objectives.is_adversarial(rest):
        return Kind.ADVERSARIAL_LOSS
    if words[-1:] == ("s",) or ("per" in words and words[-1:] in {("second",), ("sec",)}):
        return Kind.RATE
    if words[-2:] == ("grad", "norm"):
        return Kind.GRAD_NORM
    if words[:1] == ("lr",) or "lr" in words[-2:] or words[-2:] == ("learning", "rate"):
        return Kind.LEARNING_RATE
    if any(w in vocabulary.REWARD for w in words) and not any(w in vocabulary.NO_REWARD for w in words):
        return Kind.REWARD
    if any(w in vocabulary.SCORE for w in words):
        return Kind.SCORE
    if words and all(w in vocabulary.PROGRESS | vocabulary.SIDES | {"total", "global", "max"} for w in words):
        return Kind.PROGRESS
    return Kind.OTHER


def _loss_kind(side: str | None, rest: tuple[str, ...]) -> Kind:
    if any(w in vocabulary.RL_LOSS for w in rest) and rest[:2] != ("cross", "entropy"):
        return Kind.RL_LOSS
    if any(w in vocabulary.GAN_LOSS for w in rest):
        return Kind.ADVERSARIAL_LOSS
    if side in ("eval", "test"):
        return Kind.EVAL_LOSS
    return Kind.LOSS if _loss_name(side, rest) else Kind.LOSS_PART


def is_reinforcement(names: Sequence[str]) -> bool:
    """Tell whether a log is of reinforcement learning, where the loss need not fall; that of DPO and its kin should."""
    if any(tokens(name)[-2:] == ("rewards", "chosen") for name in names):
        return False
    return any(w in vocabulary.RL_SIGNS for name in names for w in tokens(name))

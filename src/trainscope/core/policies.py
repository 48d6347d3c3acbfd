"""Names by which logs of reinforcement learning call what is no reward: KL, entropy, dead groups, sampler and ratios.

As TRL, verl, OpenRLHF, slime, NeMo RL, open-instruct, prime-rl, ms-swift, Stable-Baselines3, CleanRL, OpenAI Baselines
and RLlib write them. Each function looks at a name as
lower-case words, as :func:`trainscope.core.metrics.tokens` splits it. A word that is not known here says that
the metric is something else (``kl_coef``, ``target_kl``, ``entropy_bonus``), and it is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

_BESIDE = frozenset({
    "train", "training", "rollout", "objective", "policy", "actor", "pi", "pol", "ppo", "grpo", "info", "learner",
    "stats", "losses", "metrics", "mean", "avg", "average", "value", "loss", "divergence",
})  # fmt: skip
"""Words that say where or how it was taken."""
_DIVERGENCE = frozenset({"kl", "approxkl", "policykl", "meankl"})
_UPDATE = frozenset({"approx", "approxkl", "policykl", "ppo", "old"})
"""Words of a divergence between the policy before an update and after it."""
_REFERENCE = frozenset({"ref", "reference"})
_TAKEN = frozenset({"train", "training", "mean", "avg", "all"})
"""Words that only say that it is a mean in training; a largest or a smallest value is something else."""


class Gap(StrEnum):
    """How a log writes the distance between the sampler's probabilities and the trainer's, of the same tokens."""

    LOG_PROBABILITY = "log-probability"
    """Mean absolute difference, in nat."""
    PROBABILITY = "probability"
    """Mean absolute difference."""
    FACTOR = "factor"
    """Mean of exp |difference in nat|; 1 where there is none."""
    DIVERGENCE = "divergence"
    """KL in nat; an estimate may be below 0."""
    RATIO = "ratio"
    """Mean of the trainer's probability over the sampler's; 1 where there is no difference."""


_GAPS: Mapping[str, Gap] = {
    "rollout logprob difference": Gap.LOG_PROBABILITY,
    "rollout probs diff": Gap.PROBABILITY,
    "token mult prob error": Gap.FACTOR,
    "rollout corr kl": Gap.DIVERGENCE,
    "rollout corr k3 kl": Gap.DIVERGENCE,
    "rollout correction kl": Gap.DIVERGENCE,
    "rollout correction k3 kl": Gap.DIVERGENCE,
    "gen kl error": Gap.DIVERGENCE,
    "vllm kl": Gap.DIVERGENCE,
    "mismatch kl": Gap.DIVERGENCE,
    "sampling importance sampling ratio": Gap.RATIO,
    "rollout corr rollout is": Gap.RATIO,
    "rollout correction is weight": Gap.RATIO,
    "sampling importance ratio": Gap.RATIO,
}
"""Not SkyRL's ``rollout_train_prob_diff_mean``: single tokens drive that ratio into the millions in good runs."""
_CLIPPED = frozenset({"clip fraction", "clipfrac", "clip frac", "pg clipfrac", "clip ratio", "clip ratio region"})
_RATIOS = frozenset({"val ratio", "probs ratio", "policy ratio", "ppo policy ratio", "actor ratio"})
_LENGTHS = frozenset({
    "completions length", "completion length", "response length", "rollout response len", "gen tokens per sample",
    "response lengths", "val sequence lengths",
})  # fmt: skip
_TRUNCATED = frozenset({
    "completions clipped ratio", "response length clip ratio", "rollout truncated ratio", "truncation rate",
})  # fmt: skip


def is_update_kl(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the KL between updates: ``approx_kl``, ``actor/ppo_kl``, ``policy/approxkl_avg``."""
    return _is_divergence(words) and any(w in _UPDATE for w in words)


def is_reference_kl(words: tuple[str, ...]) -> bool:
    """Tell whether a name is any other KL of a policy, mostly to a reference: ``kl``, ``objective/kl``, ``kl_loss``."""
    return _is_divergence(words) and not is_update_kl(words)


def is_entropy(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the entropy of a policy: ``entropy``, ``actor/entropy``, ``train/entropy_loss``."""
    return words.count("entropy") == 1 and all(w in _BESIDE or w == "entropy" for w in words)


def is_dead_share(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the share of groups whose completions all have the same reward."""
    return words[-4:] == ("frac", "reward", "zero", "std")


def is_group_spread(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the mean over groups of the standard deviation of their rewards."""
    return words in {("reward", "std"), ("train", "reward", "std")}


def gap(words: tuple[str, ...]) -> Gap | None:
    """Return how a name writes the distance between sampler and trainer, None if it is no such distance."""
    return _GAPS.get(_without(words, _TAKEN | {"debug"}))


def is_clip_share(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the share of tokens or actions that the policy's clipping holds back."""
    return "value" not in words and _without(words, _BESIDE - {"value"}) in _CLIPPED


def is_ratio(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the mean ratio of a policy to the one before: ``val/ratio``, ``probs_ratio``."""
    return _without(words, _TAKEN) in _RATIOS


def is_length(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the mean length of a completion, in tokens."""
    return _without(words, _TAKEN) in _LENGTHS


def is_truncated_share(words: tuple[str, ...]) -> bool:
    """Tell whether a name is the share of completions that were cut at the largest length."""
    return _without(words, _TAKEN) in _TRUNCATED


def _without(words: tuple[str, ...], dropped: frozenset[str]) -> str:
    return " ".join(w for w in words if w not in dropped)


def _is_divergence(words: tuple[str, ...]) -> bool:
    known = _BESIDE | _DIVERGENCE | _UPDATE | _REFERENCE
    return any(w in _DIVERGENCE for w in words) and all(w in known for w in words)

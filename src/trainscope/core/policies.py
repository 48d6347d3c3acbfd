"""Names by which logs of reinforcement learning call what is no reward: KL divergence, entropy, groups without spread.

As TRL, verl, OpenRLHF, Stable-Baselines3, OpenAI Baselines and RLlib write them. Each function looks at a name as
lower-case words, as :func:`trainscope.core.metrics.tokens` splits it. A word that is not known here says that
the metric is something else (``kl_coef``, ``target_kl``, ``entropy_bonus``), and it is left alone.
"""

from __future__ import annotations

_BESIDE = frozenset({
    "train", "training", "rollout", "objective", "policy", "actor", "pi", "pol", "ppo", "grpo", "info", "learner",
    "stats", "losses", "metrics", "mean", "avg", "average", "value", "loss", "divergence",
})  # fmt: skip
"""Words that say where or how it was taken."""
_DIVERGENCE = frozenset({"kl", "approxkl", "policykl", "meankl"})
_UPDATE = frozenset({"approx", "approxkl", "policykl", "ppo", "old"})
"""Words of a divergence between the policy before an update and after it."""
_REFERENCE = frozenset({"ref", "reference"})


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


def _is_divergence(words: tuple[str, ...]) -> bool:
    known = _BESIDE | _DIVERGENCE | _UPDATE | _REFERENCE
    return any(w in _DIVERGENCE for w in words) and all(w in known for w in words)

"""Names of objectives that do not say "loss", and names that say it and are none.

A network's objective can be a sum of named parts (``G_A``, ``D_real``), a loss in other units (``bpb``), or a
number about the loss (``loss_scale``, ``best_loss``). Each function looks at a name as lower-case words, as
:func:`trainscope.core.metrics.tokens` splits it.
"""

from __future__ import annotations

_PLAYERS = frozenset({"g", "d", "gen", "disc", "generator", "discriminator", "critic", "gan"})
_PLAYED = frozenset(
    {"a", "b", "l1", "l2", "gan", "real", "fake", "vgg", "feat", "fm", "adv", "gp", "err", "l", "total", "all"}
)
_BIT_UNITS = frozenset({"byte", "char", "character", "dim", "token", "word"})
_BIT_WORDS = frozenset({"bpb", "bpc", "bpd", "bpt"})
_ABOUT = frozenset({"scale", "scaler", "weight", "weights", "coef", "coeff", "lambda", "best", "lowest", "threshold"})

_COST = frozenset({"cost", "function", "batch", "minibatch", "total", "objective", "avg", "average", "mean"})


def is_adversarial(words: tuple[str, ...]) -> bool:
    """Tell whether a name without "loss" is of a game of two networks: ``G_A``, ``D_real``, ``errG``."""
    players = [w for w in words if w in _PLAYERS]
    if not players or any(w not in _PLAYERS | _PLAYED for w in words):
        return False
    return len(words) > 1 or len(words[0]) > 1


def is_bits(words: tuple[str, ...]) -> bool:
    """Tell whether a name is a loss in bits: ``bpb``, ``bits_per_dim``, ``bits/char``."""
    if any(w in _BIT_WORDS for w in words):
        return True
    return "bits" in words and words[-1] in _BIT_UNITS


def is_about_loss(words: tuple[str, ...]) -> bool:
    """Tell whether a name with "loss" in it is a setting or a record: ``loss_scale``, ``best_loss``."""
    return any(w in _ABOUT for w in words)


def is_epoch_mean(words: tuple[str, ...]) -> bool:
    """Tell whether a series repeats another one as means of epochs, as the text reader names it."""
    return words[:2] == ("epoch", "mean")


def is_cost(words: tuple[str, ...]) -> bool:
    """Tell whether a name is nothing but "cost", which is what textbooks call the loss: ``average cost``."""
    return "cost" in words and all(w in _COST for w in words)

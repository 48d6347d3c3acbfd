"""What the words of a text log name: counters, metrics, phases of training, units."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from trainscope.core.metrics import Kind, canonical, kind, tokens
from trainscope.readers.vocabulary import PHASES, STEP_NAMES, TOTAL_NAMES, is_clockwork, plain_name


class Role(StrEnum):
    """What a number is for."""

    VALUE = "value"
    STEP = "step"
    """Counts steps: ``step``, ``iter``, ``batch``."""
    EPOCH = "epoch"
    PROGRESS = "progress"
    """The n of a nameless ``n/N``, or a nameless whole number at the start of the line."""
    TOTAL = "total"
    """The N of ``n/N``."""
    AVERAGE = "average"
    """A running mean or deviation in brackets behind a value."""
    NONE = "none"
    """A time of day, a list's second element, a number without a name."""


COUNTERS = frozenset({Role.STEP, Role.EPOCH, Role.PROGRESS})

_MEASURE_UNIT = re.compile(
    r" ?(?:(?P<thing>samples|images|examples|sequences|tokens|tok|it|iters?|steps)/(?:s|sec|second)"
    r"|(?:ms|s|secs?|seconds?)(?:/(?:it|iter|step|batch|img|image))?)(?=[\s,;|)\].]|$)",
    re.IGNORECASE,
)

_EXTRA_STEPS = frozenset(
    {
        "s",
        "micro_step",
        "n_iter",
        "niter",
        "cur_iter",
        "update_num",
        "optim_step",
        "num_batches",
        "episode",
        "episodes",
        "generation",
    }
)

_ANNOUNCING = {"evaluating": "eval", "validating": "eval", "validate": "eval", "evaluate": "eval"}

SIDES = frozenset(PHASES) | frozenset(_ANNOUNCING) | {"total", "global", "current", "of", "learning", "completed"}

_MORE_METRICS = frozenset(
    {
        "norm",
        "ppl",
        "perplexity",
        "bpb",
        "bpc",
        "wer",
        "cer",
        "mcc",
        "err",
        "error",
        "mae",
        "rmse",
        "fid",
        "bcer",
        "bwer",
    }
)

_SETTINGS = frozenset(
    {
        "weight",
        "weights",
        "decay",
        "warmup",
        "beta",
        "betas",
        "gamma",
        "alpha",
        "thresh",
        "threshold",
        "interval",
        "freq",
        "frequency",
        "power",
        "classes",
        "fraction",
        "coef",
        "coeff",
        "scale",
        "scaler",
        "factor",
        "smoothing",
        "size",
        "dim",
    }
)

MEASURES = frozenset({"time", "mfu", "speed", "throughput", "dt", "memory", "mem", "eta", "took"})
"""Words that name a cost of training, and no quality."""

_EPOCHS = frozenset({"epoch", "epochs", "ep", "epoc"})


def with_unit(name: str, follow: str) -> str:
    """Return a name that says it if the unit makes the number a duration or a rate: ``Eval: 0.3 s/iter``."""
    if follow.startswith("%") and name.lower() in PHASES:
        return f"{name} accuracy"
    found = _MEASURE_UNIT.match(follow)
    timed = kind(name) in (Kind.DURATION, Kind.RATE) or (is_clockwork(name) and name.lower() not in PHASES)
    if found is None or timed:
        return name
    words = tokens(name)
    if found["thing"]:
        thing = {"tok": "tokens", "it": "steps", "iter": "steps", "iters": "steps"}.get(found["thing"], found["thing"])
        return f"{thing} per second" if words[-1:] and words[-1] in MEASURES | {"ips", "rate"} else name
    return name if words[-1:] and words[-1] in MEASURES | {"latency", "cost", "duration"} else f"{name} time"


@lru_cache(maxsize=65536)
def counter_named(name: str) -> Role | None:
    """Return what a name counts, None if it names no counter."""
    if not name:
        return None
    words = [w for w in tokens(name) if w not in SIDES] or list(tokens(name))
    if plain_name(name) in TOTAL_NAMES or words[:1] in (["max"], ["number"]):
        return None
    if words[-1:] and words[-1] in _EPOCHS and len(words) <= 2 and (len(words) == 1 or words[-1] == "epoch"):
        return Role.EPOCH
    plain = "_".join(words)
    if plain in STEP_NAMES or plain_name(name) in STEP_NAMES or plain in _EXTRA_STEPS:
        return Role.STEP
    return None


@lru_cache(maxsize=65536)
def is_known(name: str) -> bool:
    """Tell whether a name is that of a metric."""
    words = tokens(name)
    if len(words) == 1 and words[0] in PHASES:
        return True
    if any(w in _SETTINGS for w in words):
        return False
    if kind(name) not in (Kind.OTHER, Kind.PROGRESS) or any(w in _MORE_METRICS for w in words):
        return True
    return canonical(name) == "train/loss"


@lru_cache(maxsize=65536)
def phase_in(text: str) -> str:
    """Return the last phase that a text names, "" for none. Paths and module names say nothing."""
    found = ""
    for word in text.split():
        if "/" in word or "." in word.strip(".:") or "_" in word:
            continue
        for part in re.findall(r"[A-Za-z]+", word):
            phase = PHASES.get(part.lower()) or _ANNOUNCING.get(part.lower())
            if phase is not None and phase != "train":
                return phase
            found = phase or found
    return found

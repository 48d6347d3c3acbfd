"""router: a mixture of experts whose router does not learn, or sends everything to few experts.

What it finds
    (a) A router that never gets a gradient.
    (b) A load that stays concentrated, experts that get next to nothing, and a router so sure of itself that the
    gradient through its softmax is gone. What one router shows of these is one finding: an error where the load is
    concentrated at the end, a warning where experts starve or the router is saturated, an information where the load
    was concentrated for a while and spread again.
    (c) Token counters that do not add up to tokens times experts per token: counted twice, in evaluation too, or not
    all.
    (d) A balance loss that stays the same whatever the load is.
Algorithm
    The norm of the routers' gradient (smoke runs, exact). The shares of each router's experts: the entropy over its
    maximum and the excess of the fullest expert, medians over the last quarter and over every 50 steps after the first
    60; the mean share of each expert over the last 200 steps. The spread of a router's logits, from the Python
    recorder: its median over the last quarter. Counters: buffers such as ``tokens_per_expert`` beside a router with a
    declared ``top_k``, against what that router chose in the training forwards, exact; less is legitimate where a
    capacity is declared. The balance loss is what a smoke run's objective has beyond its cross entropy.
Parameters
    entropy: least normalised entropy of the load; an excess of the fullest expert by the rest of it is as bad.
    start: share of the run before which concentration is normal.
    starving: share of what is fair, below which an expert starves.
    spread: largest standard deviation of a router's logits.
False positives
    Routers that are not trained on purpose (hash routing) and named ``router``; experts that a narrow fine-tuning has
    no use for; routers that specialise late.
Misses
    Routers that neither have a usual name nor sit beside experts; counters under another name, or that hold a
    moving average. Saturation in smoke runs, which record no logits, and of routers that give shares.
Reference
    pytorch/torchtitan#1246 (one expert per layer gets every token), #1593 and #4148 (tokens counted twice, and in
    evaluation), hyper-parallel#752 (a constant balance loss). Measured: healthy and faulty mixtures both concentrate
    before step 60, so nothing is judged early; a healthy expert's share is never below a third of the fair one, and a
    router that starts on one expert without a balance loss leaves one to three of eight with less than a tenth;
    healthy logits spread by 0.1 to 0.3, those of that router by 37 to 83, at a token entropy of 0.01 of its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke, number
from trainscope.detectors.engine.balance import OBJECTIVE, constant_balance
from trainscope.detectors.engine.expert_counts import miscount
from trainscope.detectors.engine.expert_load import (
    FEWEST,
    Load,
    loads,
    logits_spread,
    starving,
    uneven,
    worst_stretch,
)

GRADIENT, LOAD = "smoke/router_gradient", "smoke/router_load_entropy"
SHARES = "shares"


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as concentrated."""

    entropy: float = 0.5
    """Of the maximum; 1 is even. Half of it means that a minority of the experts does nearly all."""
    start: float = 0.75
    """Of the run."""
    starving: float = 0.1
    """Of an even share."""
    spread: float = 4.2
    """Independent normal logits with it have a token entropy of 0.3 of its maximum, for 2 to 256 experts alike."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return a finding for a router without gradient, for loads, for counters and for a balance loss."""
    recorded = list(loads(run))
    skip = needs_smoke(run, GRADIENT, LOAD)
    if skip is not None and not recorded:
        return skip
    findings = []
    gradient = run.get(GRADIENT)
    if gradient is not None and not gradient.value.any():
        findings.append(
            _finding(
                GRADIENT,
                "Router without gradient",
                f"The routers' gradient is 0 at all {len(gradient)} steps: they never learn where to send tokens.",
                int(gradient.step[0]),
                int(gradient.step[-1]),
                0.0,
                "Multiply the experts' output by the routing weight, outside no_grad and detach.",
            )
        )
    findings += _loads(run, recorded, params) if recorded else _mean_load(run, params)
    return findings + _counters(run) + _balance(run, recorded)


@dataclass(frozen=True, slots=True)
class _Ill:
    """What is wrong with one router, gravest first."""

    severity: Severity
    title: str
    said: tuple[str, ...]
    start: int
    value: float


def _loads(run: Run, recorded: list[Load], params: Params) -> list[Finding]:
    """Return one finding about the router that is worst, which counts the others."""
    ill = [(load, found) for load in recorded if (found := _judged(run, load, params)) is not None]
    if not ill:
        return []
    load, worst = min(ill, key=lambda one: (-one[1].severity, one[1].start))
    more = f" Of the other routers {len(ill) - 1} {'is' if len(ill) == 2 else 'are'} wrong too." if ill[1:] else ""
    said = " ".join(worst.said) + more
    fixes = (
        "Check the balance loss: its coefficient, and that its gradient reaches the router.",
        "Add a z-loss on the router's logits, and check how they are initialised.",
    )
    span = worst.start, int(load.step[-1])
    made = _finding(SHARES, worst.title, said, *span, worst.value, *fixes, severity=worst.severity)
    return [replace(made, layer=load.router)]


def _judged(run: Run, load: Load, params: Params) -> _Ill | None:
    """Return what is wrong with one router, None if nothing is."""
    if len(load.step) < FEWEST:
        return None
    parts = [_concentrated(load, params), _starving(load, params), _saturated(run, load, params)]
    found = sorted((part for part in parts if part is not None), key=lambda part: -part.severity)
    if not found:
        return None
    first = found[0]
    said = tuple(text for part in found for text in part.said)
    return _Ill(first.severity, first.title, said, min(part.start for part in found), first.value)


def _concentrated(load: Load, params: Params) -> _Ill | None:
    begin = int(len(load.step) * params.start)
    level = float(np.median(load.entropy()[begin:]))
    stretch = worst_stretch(load, params.entropy)
    if np.median(uneven(load, params.entropy)[begin:]) > 1:
        share = number(100 * float(np.median(load.shares[begin:].max(axis=1))))
        said = (
            f"The load of {load.router} has {number(level)} of the largest entropy over the last "
            f"{len(load.step) - begin} steps; its fullest expert gets {share} %."
        )
        return _Ill(Severity.ERROR, "Experts unevenly used", (said,), int(load.step[begin]), level)
    if stretch is None:
        return None
    first, last = stretch
    while_so = (load.step >= first) & (load.step <= last)
    lowest = float(np.median(load.entropy()[while_so]))
    said = f"{load.router} sent most tokens to few experts from step {first} to {last}, and spread them again."
    return _Ill(Severity.INFO, "Experts were unevenly used for a while", (said,), first, lowest)


def _starving(load: Load, params: Params) -> _Ill | None:
    found = starving(load, params.starving)
    if found is None:
        return None
    few, since = found
    share = float(load.shares[load.step >= since][:, few].mean() * load.experts)
    many = f"{len(few)} of {load.experts} experts" if len(few) > 1 else f"one of {load.experts} experts"
    said = (
        f"From step {since} to {int(load.step[-1])} {load.router} gives {many} (number "
        f"{', '.join(map(str, few[:5]))}{', ...' if len(few) > 5 else ''}) {number(100 * share)} % of a fair share."
    )
    return _Ill(Severity.WARNING, "Experts get no tokens", (said,), since, share)


def _saturated(run: Run, load: Load, params: Params) -> _Ill | None:
    found = logits_spread(run.layers, load.router, params.start)
    if found is None or found[0] <= params.spread:
        return None
    said = (
        f"The logits of {load.router} spread by {number(found[0])}: its softmax picks one expert for nearly every "
        "token, and hardly any gradient comes through it."
    )
    return _Ill(Severity.WARNING, "Router is saturated", (said,), found[1], found[0])


def _mean_load(run: Run, params: Params) -> list[Finding]:
    """Judge the mean over routers, where their shares are not there."""
    load = run.get(LOAD)
    if load is None or len(load) < FEWEST:
        return []
    late = load.value[int(len(load) * params.start) :]
    level = float(np.median(late))
    if level >= params.entropy:
        return []
    said = f"The load's entropy is {number(level)} of its maximum over the last {len(late)} steps."
    first, last = int(load.step[len(load) - len(late)]), int(load.step[-1])
    fix = "Check the balance loss: its coefficient, and that its gradient reaches the router."
    return [_finding(LOAD, "Experts unevenly used", said, first, last, level, fix)]


def _balance(run: Run, recorded: list[Load]) -> list[Finding]:
    found = constant_balance(run, recorded)
    if found is None:
        return []
    start, level, moved = found
    said = (
        f"The objective has {number(level)} beyond its cross entropy at every step from {start} on, while the excess "
        f"of the fullest expert moved by {number(100 * moved)} % of its range: the balance loss does not see the load."
    )
    fix = "Compute the balance loss from this step's shares and probabilities, summed over tokens and not over experts."
    last = int(recorded[0].step[-1])
    return [_finding(OBJECTIVE, "Balance loss is constant", said, start, last, level, fix, severity=Severity.WARNING)]


def _counters(run: Run) -> list[Finding]:
    found = miscount(run)
    if found is None:
        return []
    first, last, ratio, message = found
    fix = "Count in training forwards only, once, and not again when a checkpointed layer runs a second time."
    return [_finding("smoke/experts_counted", "Expert counters do not add up", message, first, last, ratio, fix)]


def _finding(
    metric: str,
    title: str,
    message: str,
    start: int,
    end: int,
    value: float,
    *fixes: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    return Finding(
        detector="router",
        severity=severity,
        title=title,
        message=message,
        metric=metric,
        start_step=start,
        end_step=end,
        evidence={"value": value},
        fixes=fixes,
    )


DETECTOR = Detector("router", "Router does not learn or balance", (GRADIENT, LOAD), Params(), detect)

"""parameters_not_training: parameters that should learn do not.

What it finds
    Parameters that get a gradient but belong to no optimizer, that are in an optimizer but never get a gradient,
    or that no step changes by a single bit; a low-rank adapter whose second half does not train; and a model all of
    whose gradients are exactly 0.
Algorithm
    Exact, from a smoke run: membership by identity, change bit by bit, at every step. Nothing is judged while the
    learning rate is 0 at every step. A vector whose gradient is never more than rounding is an information: it
    cancels out of the loss, as a bias before a batch norm and that of attention's keys do. Experts of a mixture that
    get no token are an information, because routing decides that; the comparison with a baseline says whether they
    used to learn. Of low-rank adapters a ``lora_B`` that is frozen or in no optimizer is an error where its ``lora_A``
    trains: it begins at 0, and lets no gradient through to the other half. A base that is frozen, a ``lora_A`` that is
    (LoRA-FA), and adapters of which both halves rest are meant.
Parameters
    shown: how many names a message spells out.
False positives
    A layer that is in the optimizer and unused on purpose (a pooler that the loss does not reach) is a warning:
    leave it out of the optimizer or freeze it with ``requires_grad_(False)``, which says that it is meant.
Misses
    Parameters that move but should not, and models of more than 4096 tensors, whose list is not kept.
Reference
    huggingface/transformers#3532, salesforce/awd-lstm-lm#30 (parameters left out of the optimizer);
    microsoft/lora#26 (lora_B stays 0 under checkpointing). E. Hu et al., "LoRA", 2021, section 4.1 (lora_B begins
    at 0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trainscope.core import facts
from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.detectors.base import Detector, Skipped, needs_smoke

_ADAPTER = re.compile(r"(?:^|[._])lora_([ab])(?=[._]|$)", re.IGNORECASE)
_OF_ANY = (
    "Check the optimizer's parameter groups, requires_grad, detach and no_grad on the way to the loss.",
    "If it is meant, freeze them with requires_grad_(False) and leave them out of the optimizer.",
)
_OF_ADAPTERS = (
    "Let lora_B train: it begins at 0, and nothing reaches lora_A through it. Freeze the base before the adapters are "
    "added, and make the optimizer after.",
    "Under gradient checkpointing, a block whose input needs no gradient gives its adapters none: use_reentrant=False, "
    "or let the embeddings' output require a gradient (enable_input_require_grads).",
)
_EXPERT = re.compile(r"(?:^|[._])(?:experts?|local_experts)(?:[._]|$)")


@dataclass(frozen=True, slots=True)
class Params:
    """How much to say."""

    shown: int = 5
    """Names in a message; all of them are in the recording."""


def detect(run: Run, params: Params) -> list[Finding] | Skipped:
    """Return one finding for each reason why parameters do not learn."""
    skip = needs_smoke(run)
    if skip is not None:
        return skip
    rate = run.get("smoke/learning_rate_max") or run.get("learning_rate")
    if rate is not None and not rate.value.any():
        return Skipped("the learning rate is 0 at every step")
    left_out = facts.names(run, "smoke.not_in_optimizer")
    used = facts.names(run, "smoke.not_in_optimizer_used")
    frozen = set(facts.names(run, "smoke.frozen"))
    never = tuple(n for n in facts.names(run, "smoke.never_gradient") if n not in frozen)
    still = tuple(n for n in facts.names(run, "smoke.never_moved") if n not in frozen and n not in never)
    halves = _halves(run)
    twins = {_other_half(name) for name in halves}
    used, still = (tuple(n for n in names if n not in halves and n not in twins) for names in (used, still))
    cancels = set(facts.names(run, "smoke.never_weighed"))
    idle = tuple(n for n in (*never, *still) if is_expert(n))
    found = [
        _finding("in no optimizer", "left_out", used, Severity.ERROR, params),
        _finding(
            "in no optimizer and without a gradient",
            "unused",
            tuple(n for n in left_out if n not in used and n not in halves),
            Severity.INFO,
            params,
        ),
        _finding(
            "in an optimizer but never given a gradient",
            "no_gradient",
            tuple(n for n in never if n not in idle),
            Severity.WARNING,
            params,
        ),
        _finding(
            "given a gradient but never changed by a step",
            "unmoved",
            tuple(n for n in still if n not in idle and n not in cancels),
            Severity.ERROR,
            params,
        ),
        _finding(
            "given a gradient that cancels out, and never changed by a step",
            "cancels",
            tuple(n for n in still if n not in idle and n in cancels),
            Severity.INFO,
            params,
        ),
        _finding(
            "of lora_B frozen or in no optimizer beside a lora_A that trains",
            "half_adapter",
            halves,
            Severity.ERROR,
            params,
        ),
        _finding("experts that no step changed", "idle_experts", idle, Severity.INFO, params),
        _all_zero(run),
    ]
    return [f for f in found if f is not None]


def is_expert(name: str) -> bool:
    """Tell whether a parameter belongs to an expert of a mixture, which may get no token."""
    return _EXPERT.search(name) is not None


def _halves(run: Run) -> tuple[str, ...]:
    """Return the ``lora_B`` that do not train though their ``lora_A`` does."""
    role = {p.name: p.role for p in facts.parameters(run)}
    return tuple(
        name
        for name, its in role.items()
        if its != "trained" and _is_b(name) and role.get(_other_half(name)) == "trained"
    )


def _is_b(name: str) -> bool:
    half = _ADAPTER.search(name)
    return half is not None and half[1] in "bB"


def _other_half(name: str) -> str:
    """Return the ``lora_A`` of a ``lora_B``, and the other way round."""
    half = _ADAPTER.search(name)
    if half is None:
        return name
    at = half.start(1)
    return name[:at] + half[1].translate(str.maketrans("abAB", "baBA")) + name[at + 1 :]


def listed(names: tuple[str, ...], shown: int) -> str:
    """Return the first names and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def _finding(what: str, key: str, names: tuple[str, ...], severity: Severity, params: Params) -> Finding | None:
    if not names:
        return None
    count = f"{len(names)} parameter tensor{'s' if len(names) > 1 else ''}"
    return Finding(
        detector="parameters_not_training",
        severity=severity,
        title="Parameters that do not learn",
        message=f"{count} {what}: {listed(names, params.shown)}.",
        metric=f"parameters/{key}",
        layer=names[0] if len(names) == 1 else None,
        evidence={"tensors": len(names)},
        fixes=_OF_ADAPTERS if all(map(_ADAPTER.search, names)) else _OF_ANY,
    )


def _all_zero(run: Run) -> Finding | None:
    norm = run.get("train/grad_norm_after_clip")
    if norm is None or len(norm) < 3 or (norm.value != 0.0).any():
        return None
    return Finding(
        detector="parameters_not_training",
        severity=Severity.ERROR,
        title="All gradients are 0",
        message=f"The optimizer got gradients of exactly 0 at all {len(norm)} steps: nothing is learned.",
        metric="train/grad_norm_after_clip",
        start_step=int(norm.step[0]),
        end_step=int(norm.step[-1]),
        evidence={"steps": len(norm), "norm": float(np.max(norm.value))},
        fixes=("Check that gradients are not cleared between backward and step, and that the loss has a graph.",),
    )


DETECTOR = Detector("parameters_not_training", "Parameters that do not learn", ("smoke facts",), Params(), detect)

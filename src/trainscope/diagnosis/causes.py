"""What can have broken a run, weighed by the signs of one incident.

Each rule is one pattern that the science knows and asks for its signs in their physical order: the learning rate
leaps before the update and the loss do, a bad batch raises loss and gradient at its own step, weights that change by
more than the update were changed by something else. A rule that finds its pattern makes a case with a strength; the
weight of a cause is its share of all strengths, the strongest case of each in full, and what no rule thought of has
its share too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trainscope.diagnosis import numerics, sudden
from trainscope.diagnosis.evidence import Case, Evidence
from trainscope.diagnosis.lasting import standing
from trainscope.diagnosis.signs import Explanation

RULES: tuple[Callable[[Evidence], Case | None], ...] = (
    sudden.bad_batch,
    sudden.rate_leap,
    sudden.lost_state,
    sudden.stale_moments,
    sudden.gradient_first,
    numerics.itself,
    numerics.not_finite,
    numerics.one_gradient,
    sudden.dead_units,
    sudden.load_collapse,
)
"""Rules of sudden faults, in causal order."""
PATTERN = 3.0
"""Strength from which a sudden fault explains the symptoms beside it."""
AGAIN = 0.25
"""What a further case for the same cause adds: the signs of one fault are not independent."""
OPEN = 1.0
"""Strength of what no rule thought of: a lone hint is believed by half, an exact fact by five sixths."""
LEAST = 0.05
"""Smallest weight of an explanation that is worth reading."""
ENDINGS = (".weight", ".bias")


def explain(evidence: Evidence) -> tuple[Explanation, ...]:
    """Return the possible causes of one incident, most likely first; none where the signs do not say.

    Parameters
    ----------
    evidence : Evidence
    """
    cases = [case for rule in RULES if (case := rule(evidence)) is not None]
    cases += standing(evidence, is_explained=any(case.strength >= PATTERN for case in cases))
    found: dict[str, Explanation] = {}
    for case in sorted(cases, key=lambda c: -c.strength):
        before = found.get(case.cause)
        found[case.cause] = _explanation(case) if before is None else _together(before, _explanation(case))
    total = OPEN + sum(one.weight for one in found.values())
    found = {cause: replace(one, weight=one.weight / total) for cause, one in found.items()}
    ranked = sorted(found.values(), key=lambda e: -e.weight)
    return tuple(replace(e, weight=round(e.weight, 3)) for e in ranked if e.weight >= LEAST)


def _explanation(case: Case) -> Explanation:
    layer, parameter = place(case.where)
    return Explanation(
        cause=case.cause,
        title=case.title,
        weight=case.strength,
        because=tuple(text for text in case.because if text != case.title),
        missing=case.missing,
        layer=layer,
        parameter=parameter,
        fixes=case.fixes,
    )


def _unsaid(title: str, because: tuple[str, ...]) -> tuple[str, ...]:
    """Return a title as evidence, unless the evidence says it already."""
    return () if any(text.startswith(title) for text in because) else (title,)


def _together(first: Explanation, second: Explanation) -> Explanation:
    """Return two cases for one cause as one explanation; the stronger gives it its title."""
    return replace(
        first,
        weight=first.weight + AGAIN * second.weight,
        because=tuple(dict.fromkeys((*first.because, *_unsaid(second.title, second.because), *second.because))),
        missing=tuple(dict.fromkeys((*first.missing, *second.missing))),
        layer=first.layer or second.layer,
        parameter=first.parameter or second.parameter,
        fixes=tuple(dict.fromkeys((*first.fixes, *second.fixes))),
    )


def place(where: str | None) -> tuple[str | None, str | None]:
    """Return (layer, parameter) of a name that may be either."""
    if where is None:
        return None, None
    for ending in ENDINGS:
        if where.endswith(ending) and where != ending:
            return where.removesuffix(ending), where
    return where, None

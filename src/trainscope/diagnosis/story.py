"""Why a run broke: its findings, told as incidents with a cause.

A story is told only where a finding of warning or error is: never of noise. Findings that begin within 20 steps are
one incident; a fault that a run has from the start is a story of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.diagnosis.causes import explain
from trainscope.diagnosis.from_findings import Manner, sign_of, told
from trainscope.diagnosis.incidents import incidents, ordered, reach_of
from trainscope.diagnosis.signs import Sign, Stage, Story


def tell(run: Run, findings: Sequence[Finding]) -> tuple[Story, ...]:
    """Return the stories of a run, by onset; none where nothing was found.

    Parameters
    ----------
    run : Run
        What the findings are about.
    findings : sequence of Finding
        Of all severities, in any order. Those below warning join a story as evidence and never make one.
    """
    grave = [f for f in findings if f.severity >= Severity.WARNING and told(f) is not None]
    if not grave:
        return ()
    sudden = [f for f in grave if _manner(f) is Manner.INCIDENT]
    lasting = [f for f in grave if _manner(f) is Manner.STATE]
    groups = incidents(_signs(sudden, run), reach_of(run))
    if lasting:
        groups.append(ordered(_signs(lasting, run)))
    return tuple(sorted((_story(group, run) for group in groups), key=lambda s: s.onset))


def _manner(finding: Finding) -> Manner:
    about = told(finding)
    return Manner.INCIDENT if about is None else about.manner


def _signs(findings: Sequence[Finding], run: Run) -> list[Sign]:
    return [s for s in (sign_of(f, run) for f in findings) if s is not None]


def _story(signs: tuple[Sign, ...], run: Run) -> Story:
    first = signs[0]
    return Story(
        signs=signs,
        onset=first.step,
        end=max(s.step if s.end_step is None else max(s.step, s.end_step) for s in signs),
        loss_step=next((s.step for s in signs if s.stage is Stage.LOSS), None),
        layer=next((s.where for s in signs if s.where is not None), None),
        explanations=explain(signs, run),
    )

"""Why a run broke: its findings, told as incidents with a cause.

A story is told only where a finding of warning or error is: never of noise. Findings that begin within 20 steps are
one incident, and the story then looks for itself at every series, layer and share around it. A fault that a run has
from the start is a story of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainscope.core.finding import Finding, Severity
from trainscope.core.run import Run
from trainscope.diagnosis.causes import explain, place
from trainscope.diagnosis.evidence import Evidence, absent
from trainscope.diagnosis.from_findings import TOLD, Manner, sign_of, told
from trainscope.diagnosis.incidents import incidents, ordered, reach_of
from trainscope.diagnosis.lasting import EXACT, SHOWS
from trainscope.diagnosis.looking import ITSELF, LAYERS_SHOWN, batch_beside, look
from trainscope.diagnosis.signs import Sign, Stage, Story
from trainscope.diagnosis.sudden import SPIKES

SURE = 12.0
"""Score from which a lone sign before the first finding belongs to the incident."""
STUPID = frozenset({"unigram_floor", "plateau"})
"""Symptoms that are noticed at the end of a run, whenever they began."""
AGAINST = frozenset({"paired_loss", "paired_signals", "eval_change"})
"""Symptoms that a baseline shows."""
DATED = frozenset({"paired_signals"})
"""Those whose first step is the step at which they began, and not that of a window."""
FEEDS = frozenset({"stale_gradients", "clipping"})
"""Faults that let every update grow: what blows up while they hold is their doing."""
CLOSE = 3
"""Steps before the first finding within which any sign belongs to it."""


def tell(run: Run, findings: Sequence[Finding]) -> tuple[Story, ...]:
    """Return the stories of a run, by onset; none where nothing was found.

    Parameters
    ----------
    run : Run
        What the findings are about.
    findings : sequence of Finding
        Of all severities, in any order. Those below warning join a story as evidence and never make one.
    """
    known = [(f, s) for f in findings if (s := sign_of(f, run)) is not None]
    grave = [(f, s) for f, s in known if f.severity >= Severity.WARNING]
    if not grave:
        return ()
    reach = reach_of(run)
    sudden = [s for f, s in grave if _manner(f) is Manner.INCIDENT]
    lasting = [s for f, s in grave if _manner(f) is Manner.STATE]
    hints = [s for f, s in known if f.severity < Severity.WARNING and _manner(f) is Manner.INCIDENT]
    groups = [_incident(run, group, hints, reach) for group in incidents(sudden, reach)]
    hot = [s for f, s in grave if f.detector == "learning_rate_change" and f.evidence.get("higher")]
    lasting = [s for s in lasting if not _follows(s, groups) and not (s in hot and _heats(s, groups))]
    states = _states([s for s in lasting if not _shows(s, groups)], groups)
    stories = [_story(run, group, findings) for group in (*groups, *states)]
    return tuple(sorted(stories, key=lambda s: (s.onset, s.end)))


def _manner(finding: Finding) -> Manner:
    about = told(finding)
    return Manner.INCIDENT if about is None else about.manner


def _follows(sign: Sign, groups: list[tuple[Sign, ...]]) -> bool:
    """Tell whether a model that stays stupid does so since an incident; the sign then joins it."""
    if sign.detector not in STUPID:
        return False
    for i, group in enumerate(groups):
        if group[0].step < sign.step and any(s.stage < Stage.LOSS for s in group):
            groups[i] = ordered((*group, sign))
            return True
    return False


def _heats(sign: Sign, groups: list[tuple[Sign, ...]]) -> bool:
    """Tell whether a rate above the baseline's explains an incident; the sign then joins the first of them.

    It does where the incident fell while the rate was off, and nothing earlier in a training step is wrong.
    """
    for i, group in enumerate(groups):
        begins, ends = sign.step, sign.end_step if sign.end_step is not None else sign.step
        if begins <= group[0].step <= ends and all(s.stage > Stage.SCHEDULE for s in group):
            groups[i] = ordered((*group, sign))
            return True
    return False


def _shows(sign: Sign, groups: list[tuple[Sign, ...]]) -> bool:
    """Tell whether a comparison shows the fault of an incident; the sign then joins it."""
    for i, group in enumerate(groups):
        if any(s.detector in SHOWS.get(sign.detector or "", ()) and s.step <= sign.step for s in group):
            groups[i] = ordered((*group, sign))
            return True
    return False


def _states(signs: Sequence[Sign], incidents: list[tuple[Sign, ...]]) -> list[tuple[Sign, ...]]:
    """Return one group for each exact fault; symptoms go with the first of them, or are one group of their own.

    A fault that explains an incident goes with it, what a comparison shows of a known fault with that fault. A symptom
    against the baseline that begins after an incident, with no exact fault before, goes with the incident.
    """
    exact = [s for s in ordered(signs) if s.detector in EXACT or s.stage is Stage.SCHEDULE]
    symptoms = [s for s in signs if s not in exact]
    if not exact:
        symptoms = [s for s in symptoms if not _joins(s, incidents)]
        return [ordered(symptoms)] if symptoms else []
    ids = {s.detector or s.signal for s in exact}
    groups: dict[str, list[Sign]] = {}
    for sign in exact:
        groups.setdefault(_fault_of(sign, ids), []).append(sign)
    first = next(iter(groups.values()))
    first += [s for s in symptoms if s.step < first[0].step or not _is_nearer(s, first, incidents)]
    return [ordered(group) for group in groups.values() if not _feeds(group, incidents)]


def _feeds(group: Sequence[Sign], incidents: list[tuple[Sign, ...]]) -> bool:
    """Tell whether a fault of all along explains an incident, which shows no cause of its own; it then joins it."""
    fault = next((s for s in group if s.detector in FEEDS), None)
    if fault is None or fault.end_step is None:
        return False
    for i, incident in enumerate(incidents):
        own = any(s.stage <= Stage.SCHEDULE or s.signal == ITSELF or s.detector == "optimizer_state" for s in incident)
        if fault.step <= incident[0].step <= fault.end_step and not own:
            incidents[i] = ordered((*incident, *group))
            return True
    return False


def _fault_of(sign: Sign, ids: set[str]) -> str:
    """Return the fault that a sign is, or that it shows."""
    own = sign.detector or sign.signal
    known = sorted(SHOWS.get(own, frozenset()) & ids)
    return _fault_of(replace(sign, detector=known[0]), ids) if known else own


def _is_nearer(sign: Sign, group: Sequence[Sign], incidents: list[tuple[Sign, ...]]) -> bool:
    """Tell whether a dated symptom begins with an incident rather than with a fault of all along; it then joins it."""
    return sign.detector in DATED and group[0].step < sign.step and _joins(sign, incidents)


def _joins(sign: Sign, incidents: list[tuple[Sign, ...]]) -> bool:
    """Let a symptom against the baseline join the last incident before it, if there is one."""
    if sign.detector not in AGAINST:
        return False
    for i in reversed(range(len(incidents))):
        if incidents[i][0].step <= sign.step:
            incidents[i] = ordered((*incidents[i], sign))
            return True
    return False


def _incident(run: Run, group: tuple[Sign, ...], hints: Sequence[Sign], reach: int) -> tuple[Sign, ...]:
    """Return the findings of an incident with what the story sees itself around its onset."""
    onset = group[0].step
    near = [s for s in hints if abs(s.step - onset) <= reach]
    seen = [s for s in look(run, onset - reach, onset + reach) if _is_part(s, onset)]
    told_of = {(s.signal, s.where): s for s in (*group, *near)}
    new = [s for s in seen if (s.signal, s.where) not in told_of or s.step < told_of[s.signal, s.where].step]
    signs = (*group, *near, *new)
    spike = next((s for s in group if s.detector in SPIKES), None)
    if spike is None or any(s.stage is Stage.DATA for s in signs):
        return ordered(signs)
    odd = batch_beside(run, spike)
    return ordered(signs if odd is None else (*signs, odd))


def _is_part(sign: Sign, onset: int) -> bool:
    """Tell whether a sign before the first finding is more than a chance outlier of one of hundreds of statistics."""
    exact = sign.score == 0.0 or sign.stage is Stage.SCHEDULE
    lasts = sign.end_step is not None and sign.end_step >= onset
    return sign.step >= onset - CLOSE or exact or lasts or sign.score >= SURE


def _story(run: Run, signs: tuple[Sign, ...], findings: Sequence[Finding]) -> Story:
    evidence = Evidence(signs, run, _gravest(findings, signs))
    explanations = explain(evidence)
    where = explanations[0].parameter or explanations[0].layer if explanations else None
    loss_step = next((s.step for s in signs if s.stage is Stage.LOSS and _is_dated(s)), None)
    where = where or _first_place([s for s in signs if not evidence.is_everywhere(s)], loss_step)
    layer, parameter = place(where)
    return Story(
        signs=_shown(signs),
        onset=signs[0].step,
        end=max(s.step if s.end_step is None else max(s.step, s.end_step) for s in signs),
        loss_step=loss_step,
        layer=layer,
        parameter=parameter,
        explanations=explanations,
        suspects=_suspects(signs),
        missing=absent(evidence, *Stage),
    )


def _is_dated(sign: Sign) -> bool:
    """Tell whether a sign says when it began: of a lasting symptom only the end is known."""
    return sign.detector is None or (sign.detector in TOLD and TOLD[sign.detector].manner is Manner.INCIDENT)


def _gravest(findings: Sequence[Finding], signs: Sequence[Sign]) -> dict[str, Finding]:
    ids = {s.detector for s in signs}
    found: dict[str, Finding] = {}
    for finding in findings:
        if finding.detector in ids:
            before = found.get(finding.detector)
            if before is None or finding.severity > before.severity:
                found[finding.detector] = finding
    return found


def _first_place(signs: Sequence[Sign], loss_step: int | None) -> str | None:
    """Return the layer or parameter that shows it first; of those at the same step and stage, the farthest off.

    What follows the loss by more than a step is an echo: the incident did not begin there.
    """
    placed = [s for s in signs if s.where is not None and (loss_step is None or s.step <= loss_step + 1)]
    return min(placed, key=lambda s: (s.step, s.stage, -s.score)).where if placed else None


def _suspects(signs: Sequence[Sign]) -> tuple[int, ...]:
    steps: set[int] = set()
    for sign in signs:
        if sign.stage is Stage.DATA and sign.detector in (None, "bad_batch"):
            steps.update(range(sign.step, (sign.end_step if sign.end_step is not None else sign.step) + 1))
    return tuple(sorted(steps))


def _shown(signs: tuple[Sign, ...]) -> tuple[Sign, ...]:
    """Keep the earliest layers of each statistic; the text of the first says how many there were."""
    count: dict[str, int] = {}
    for sign in signs:
        count[sign.signal] = count.get(sign.signal, 0) + (sign.where is not None and sign.detector is None)
    shown: dict[str, int] = {}
    kept = []
    for sign in signs:
        if sign.where is None or sign.detector is not None:
            kept.append(sign)
            continue
        shown[sign.signal] = shown.get(sign.signal, 0) + 1
        if shown[sign.signal] > LAYERS_SHOWN:
            continue
        many = shown[sign.signal] == 1 and count[sign.signal] > LAYERS_SHOWN
        event = f"{sign.event} (first of {count[sign.signal]} layers)" if many else sign.event
        kept.append(replace(sign, event=event))
    return tuple(kept)

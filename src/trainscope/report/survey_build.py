"""From many judged runs to a survey: who broke alike, what they share, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import numpy as np

from trainscope.core.run import FloatArray
from trainscope.detectors import DETECTORS
from trainscope.diagnosis.case import Case
from trainscope.diagnosis.clusters import Cluster, clusters
from trainscope.diagnosis.counterexample import Counterexample, nearest_stable
from trainscope.diagnosis.fate import Band, common_fate, normalised
from trainscope.diagnosis.from_findings import TOLD
from trainscope.diagnosis.signature import signature
from trainscope.diagnosis.traits import Traits, compare, settings_of
from trainscope.report.build import scalar
from trainscope.report.case_build import optional, status_of
from trainscope.report.case_document import (
    BandEntry,
    ClusterEntry,
    CounterexampleEntry,
    DifferenceEntry,
    LeadEntry,
    LeftOut,
    MemberEntry,
    Survey,
    TraitEntry,
    TraitsEntry,
)
from trainscope.report.document import RunEntry
from trainscope.report.gate import count
from trainscope.report.number import number
from trainscope.report.part import Number
from trainscope.report.text import plural, well_formed

TITLES: Mapping[str, str] = {detector.id: detector.title for detector in DETECTORS}
SIGNALS_IN_TITLE = 3


def survey(
    cases: Sequence[Case], entries: Sequence[RunEntry], unjudged: int = 0, *, ranks: Sequence[int] | None = None
) -> Survey:
    """Return the survey of some runs.

    Parameters
    ----------
    cases : sequence of Case
    entries : sequence of RunEntry
        Of the same runs, in the same order.
    unjudged : int
        Logs that could not be judged.
    ranks : sequence of int, optional
        How many recorded ranks of a launch each run stands for; one each, where not given.
    """
    many = {id(case): n for case, n in zip(cases, ranks or [1] * len(cases), strict=True)}
    entry_of = {id(case): entry for case, entry in zip(cases, entries, strict=True)}
    stable = [case for case in cases if case.is_stable]
    found = clusters(cases)
    named = {letters(n): cluster for n, cluster in enumerate(found)}
    home = {id(case): name for name, cluster in named.items() for case in cluster.members}
    broken = sum(len(cluster.members) for cluster in found)
    ranked = [case for cluster in found for case in cluster.members]
    rest = sorted((c for c in cases if id(c) not in home), key=lambda c: (not c.is_stable, c.run.name, c.run.source))
    return Survey(
        summary=_summary(broken, len(stable), unjudged, len(found)),
        broken=broken,
        stable=len(stable),
        unjudged=unjudged,
        clusters=[_cluster(name, cluster, stable, entry_of) for name, cluster in named.items()],
        members=[_member(case, entry_of[id(case)], home.get(id(case)), many[id(case)]) for case in (*ranked, *rest)],
    )


def letters(n: int) -> str:
    """Return ``A`` for 0, ``Z`` for 25, ``AA`` for 26."""
    return ("" if n < 26 else letters(n // 26 - 1)) + ascii_uppercase[n % 26]


def _summary(broken: int, stable: int, unjudged: int, ways: int) -> str:
    total = broken + stable
    if not broken:
        said = "The one run is stable" if total == 1 else f"All {total} runs are stable"
        said += ": nothing at or above warning was found"
    else:
        how = "in one way" if ways == 1 else f"in {ways} ways"
        said = f"{broken} of {plural(total, 'run')} broke" + (f", {how}" if broken > 1 else "")
        said += f"; {stable} {'is' if stable == 1 else 'are'} stable" if stable else "; none is stable"
    return said + (f"; {plural(unjudged, 'log')} could not be judged." if unjudged else ".")


def title_of(cluster: Cluster) -> str:
    """Return what a cluster is called: where it begins, what usually follows, and what it comes to."""
    names = [TITLES.get(signal, signal) for signal in cluster.signals[:SIGNALS_IN_TITLE]]
    shown = " → ".join(names) if names else "no signal in common"
    more = len(cluster.signals) - len(names)
    said = f"{shown} and {more} more" if more > 0 else shown
    outcome = max(cluster.found, key=lambda d: (cluster.found[d], TOLD[d].stage if d in TOLD else 0, d), default=None)
    if outcome is not None and outcome not in cluster.signals:
        said += f" ({TITLES.get(outcome, outcome).lower()})"
    return said if cluster.first is None else f"{cluster.first.name.capitalize()}-led: {said}"


def _member(case: Case, entry: RunEntry, home: str | None, ranks: int) -> MemberEntry:
    story = case.main
    last = next((m.last for m in entry.metrics if m.name == "train/loss"), None)
    return MemberEntry(
        id=entry.id,
        name=entry.name,
        source=entry.source,
        format=entry.format,
        status=status_of(case),
        ranks=ranks,
        cluster=home,
        last_step=entry.steps.last,
        onset=case.onset,
        loss_step=None if story is None else story.loss_step,
        lead=None if story is None else story.lead,
        cause=None if story is None or story.cause is None else story.cause.value,
        counts=count(entry.findings),
        signals=[well_formed(s) for s in signature(case).signals] if home is not None else [],
        last_loss=last,
        settings=len(settings_of(case.run)),
    )


def _cluster(name: str, cluster: Cluster, stable: Sequence[Case], entry_of: Mapping[int, RunEntry]) -> ClusterEntry:
    nearest = nearest_stable(cluster.members, stable)
    lead = cluster.lead
    return ClusterEntry.model_validate(
        {
            "id": name,
            "title": well_formed(title_of(cluster)),
            "members": [entry_of[id(case)].id for case in cluster.members],
            "signals": [well_formed(s) for s in cluster.signals],
            "shares": {well_formed(s): share for s, share in cluster.shares.items()},
            "found": dict(cluster.found),
            "stages": [stage.name.lower() for stage in cluster.stages],
            "places": [well_formed(p) for p in cluster.places],
            "causes": {cause.value: n for cause, n in cluster.causes.items()},
            "lead": None
            if lead is None
            else LeadEntry(median=number(lead.median), least=lead.least, most=lead.most, runs=lead.runs),
            "traits": _traits(compare([c.run for c in cluster.members], [c.run for c in stable])),
            "fate": _band(common_fate(cluster.members), nearest),
            "counterexample": _counterexample(nearest, entry_of),
        }
    )


def _traits(found: Traits) -> TraitsEntry:
    return TraitsEntry(
        members=found.members,
        stable=found.stable,
        tried=found.tried,
        traits=[
            TraitEntry.model_validate(
                {
                    "key": well_formed(t.key),
                    "relation": t.relation,
                    "value": scalar(t.value),
                    "members": t.members,
                    "stable": t.stable,
                    "p_value": t.p_value,
                    "corrected": t.corrected,
                    "also": [well_formed(a) for a in t.also],
                }
            )
            for t in found.traits
        ],
        reason=well_formed(found.reason) or None,
    )


def _band(band: Band, nearest: Counterexample) -> BandEntry:
    member, stable = nearest.member, nearest.stable
    other = np.full(len(band.offset), np.nan)
    if member is not None and stable is not None and member.onset is not None and len(other):
        other = normalised(stable.run, member.onset, band.offset)
    return BandEntry(
        runs=band.members,
        offset=[int(o) for o in band.offset],
        median=_column(band.median),
        low=_column(band.low),
        high=_column(band.high),
        alive=[int(n) for n in band.runs],
        counterexample=[] if np.isnan(other).all() else _column(other),
        left_out=[LeftOut(name=well_formed(name), reason=reason) for name, reason in band.left_out],
    )


def _column(values: FloatArray) -> list[Number | None]:
    return [optional(float(f"{v:.6g}")) for v in values]


def _counterexample(found: Counterexample, entry_of: Mapping[int, RunEntry]) -> CounterexampleEntry:
    return CounterexampleEntry(
        member=None if found.member is None else entry_of[id(found.member)].id,
        stable=None if found.stable is None else entry_of[id(found.stable)].id,
        distance=None if found.distance is None else min(max(found.distance, 0.0), 1.0),
        differences=[
            DifferenceEntry(
                key=well_formed(d.key),
                member=scalar(d.member),
                stable=scalar(d.stable),
                members_alike=d.members_alike,
                stable_alike=d.stable_alike,
                p_value=d.p_value,
            )
            for d in found.differences
        ],
        more=found.more,
        reason=well_formed(found.reason) or None,
    )

"""The survey of many runs as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainscope.report.case_document import ClusterEntry, CounterexampleEntry, MemberEntry, Survey, TraitsEntry
from trainscope.report.case_text import (
    band_rows,
    causes_words,
    lead_short,
    lead_words,
    probability,
    setting,
    shares_words,
    trait_words,
)
from trainscope.report.gate import describe
from trainscope.report.markdown import cell, code, details, escape, row
from trainscope.report.survey_build import TITLES
from trainscope.report.text import figure, label, plural

MOST_MEMBERS = 12
"""Members that are listed; the rest is folded away."""


def survey_lines(survey: Survey) -> Iterator[str]:
    """Yield the survey as lines of Markdown."""
    names = {member.id: member for member in survey.members}
    yield f"# {escape(survey.summary)}"
    yield ""
    if survey.clusters:
        yield row(["", "How they broke", "Runs", "Steps before the loss", "Likely cause"])
        yield "| --- | --- | ---: | ---: | --- |"
        for cluster in survey.clusters:
            cause = causes_words(cluster)
            yield row(
                [cluster.id, escape(cluster.title), str(len(cluster.members)), lead_short(cluster.lead), escape(cause)]
            )
        yield ""
    for cluster in survey.clusters:
        yield from _cluster(cluster, names)
    stable = [m for m in survey.members if m.status == "stable"]
    if stable:
        yield from details(plural(len(stable), "stable run"), [_member(m) for m in stable])


def _member(member: MemberEntry) -> str:
    parts = [_called(member)]
    if member.ranks > 1:
        parts.append(f"{member.ranks} ranks")
    if member.onset is not None:
        parts.append(f"from step {member.onset}")
    if member.status == "broken":
        parts.append(describe(member.counts))
    if member.last_loss is not None:
        parts.append(f"last loss {figure(member.last_loss)}")
    return " · ".join(parts)


def _called(member: MemberEntry) -> str:
    return f"**{escape(label(member.name))}** {code(member.source)}"


def _cluster(cluster: ClusterEntry, names: Mapping[str, MemberEntry]) -> Iterator[str]:
    yield f"## {cluster.id} · {escape(cluster.title)}"
    yield ""
    yield f"{plural(len(cluster.members), 'run')}. First sign: {lead_words(cluster.lead)}."
    signals = ", ".join(f"{escape(label(name))} {share}" for name, share in shares_words(cluster, TITLES))
    yield f"Signs, in their usual order: {signals}." if signals else ""
    if cluster.found:
        yield f"Found by {', '.join(f'{code(name)} in {n}' for name, n in cluster.found.items())}."
    if cluster.places:
        yield f"In {', '.join(code(place) for place in cluster.places)}."
    yield ""
    members = [names[m] for m in cluster.members]
    if len(members) <= MOST_MEMBERS:
        yield from (f"- {_member(member)}" for member in members)
        yield ""
    else:
        yield from details("Members", [_member(member) for member in members])
    yield from _traits(cluster.traits)
    yield from _counterexample(cluster.counterexample, names)
    yield from _fate(cluster)


def _traits(found: TraitsEntry) -> Iterator[str]:
    yield "### What they share and stable runs lack"
    yield ""
    if found.reason is not None:
        yield f"Nothing to report: {escape(found.reason)}."
        yield ""
        return
    yield row(["Setting", "These", "Stable", "p", "p, corrected"])
    yield "| --- | ---: | ---: | ---: | ---: |"
    for trait in found.traits:
        key, relation, value = trait_words(trait)
        also = f" (so do {', '.join(cell(a, 40) for a in trait.also)})" if trait.also else ""
        yield row(
            [
                f"{cell(key)} {relation} {cell(value, 60)}{also}",
                f"{trait.members} of {found.members}",
                f"{trait.stable} of {found.stable}",
                probability(trait.p_value),
                probability(trait.corrected),
            ]
        )
    yield ""
    tried = plural(found.tried, "way")
    yield f"Fisher's exact test, one-sided; corrected for {tried} to split these runs. A trait is no cause yet."
    yield ""


def _counterexample(found: CounterexampleEntry, names: Mapping[str, MemberEntry]) -> Iterator[str]:
    yield "### Why these and not the others"
    yield ""
    if found.member is None or found.stable is None:
        yield f"Cannot say: {escape(found.reason or '')}."
        yield ""
        return
    broken, stable = names[found.member], names[found.stable]
    near = "" if found.distance is None else f" (distance of the settings {found.distance:.2f})"
    yield f"Nearest stable run: {_called(stable)}, beside {_called(broken)}{near}."
    if found.reason is not None:
        yield f"{escape(found.reason[:1].upper() + found.reason[1:])}."
    yield ""
    if found.differences:
        yield row(["Setting", "Broke", "Stable", "Members like the first", "Stable runs like the first"])
        yield "| --- | --- | --- | ---: | ---: |"
        for d in found.differences:
            values = (cell(setting(d.member), 60), cell(setting(d.stable), 60))
            counts = [f"{alike} of {of}" for alike, of in (d.members_alike, d.stable_alike)]
            yield row([cell(d.key), *values, *counts])
        if found.more:
            yield row([f"{plural(found.more, 'more setting')}", "", "", "", ""])
        yield ""


def _fate(cluster: ClusterEntry) -> Iterator[str]:
    band = cluster.fate
    yield "### What became of them"
    yield ""
    rows = band_rows(band)
    if rows:
        yield "Loss over its median before the onset: median of the runs, and the middle half where there are three."
        yield ""
        yield row(["Steps from the onset", *(f"{offset:+d}" for offset, *_ in rows)])
        yield f"| --- |{' ---: |' * len(rows)}"
        yield row(["Loss", *(figure(median) for _, median, *_ in rows)])
        if any(low is not None for _, _, low, *_ in rows):
            spans = ["-" if low is None else f"{figure(low)} to {figure(high)}" for _, _, low, high, _ in rows]
            yield row(["Middle half", *spans])
        yield row(["Runs", *(str(runs) for *_, runs in rows)])
        yield ""
    for out in band.left_out:
        yield f"- {escape(label(out.name))} has no part in it: {escape(out.reason)}"
    if band.left_out:
        yield ""

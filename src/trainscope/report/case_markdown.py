"""The case file of one run as GitHub-flavoured Markdown, and the change of its weights."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from trainscope.report.case_document import (
    CaseEntry,
    CaseFile,
    DiffEntry,
    ReplayEntry,
    WeightChangeEntry,
)
from trainscope.report.case_text import (
    ACTIONS,
    MOST_LAYERS,
    STAGES,
    change_words,
    events_of,
    grown,
    replay_words,
    settings_shown,
    where_first,
    without_number,
)
from trainscope.report.document import ErrorEntry, FindingEntry, RunEntry
from trainscope.report.gate import describe
from trainscope.report.markdown import cell, code, details, escape, finding_lines, row
from trainscope.report.story_document import ExplanationEntry, Incident, StoryEvent
from trainscope.report.survey_markdown import survey_lines
from trainscope.report.text import figure, label, plural

MARKS: Mapping[str, str] = {"broken": "❌", "stable": "✅", "unjudged": "⚠️"}
MOST_BATCHES = 20
TOLD_ABOVE = "Told above, under What happened."


def render(file: CaseFile) -> str:
    """Return the case file as Markdown."""
    lines: list[str] = []
    if file.case is not None:
        lines += _case(file.case)
    if file.survey is not None:
        lines += survey_lines(file.survey)
    if file.diff is not None:
        lines += _diff(file.diff)
    lines += errors_lines(file.errors)
    return "\n".join(lines).rstrip() + "\n"


def errors_lines(errors: Sequence[ErrorEntry]) -> Iterator[str]:
    """Yield the logs that could not be judged."""
    if not errors:
        return
    yield "## Could not be judged"
    yield ""
    for error in errors:
        line = "" if error.line is None else f" line {error.line}"
        yield f"- {code(error.source)}{line}: {escape(error.reason)}"
    yield ""


def mark(case: CaseEntry) -> str:
    """Return the sign of a verdict: trouble without an error has that of a warning."""
    return MARKS["unjudged"] if case.status == "broken" and not case.counts.error else MARKS[case.status]


def _case(case: CaseEntry) -> Iterator[str]:
    run = case.run
    yield f"# Case file: {escape(label(run.name))}"
    yield ""
    yield f"{mark(case)} **{escape(case.summary)}**"
    yield ""
    steps = f"{run.x_axis}s {run.steps.first} to {run.steps.last}"
    yield " · ".join((code(run.source), escape(label(run.format)), steps, describe(case.counts)))
    yield ""
    if case.ranks is not None:
        yield f"This is {escape(case.ranks)}."
        yield ""
    for number, incident in enumerate(run.incidents, 1):
        which = "" if len(run.incidents) == 1 else f" {number}" + (" (the main one)" if number == case.main else "")
        yield from _incident(incident, events_of(run, number), which, run.x_axis)
    if case.weight_change is not None:
        yield "## How the weights moved"
        yield ""
        yield from change_lines(case.weight_change, MOST_LAYERS)
    yield "## Findings"
    yield ""
    if not run.findings:
        yield f"None; {plural(len(run.judged), 'detector')} ran."
        yield ""
    given = {fix for incident in run.incidents for one in incident.explanations for fix in one.fixes}
    for finding in run.findings:
        yield from finding_lines(_unsaid(finding, run, given), run)
    if case.replay is not None:
        yield from _replay(case.replay)
    if case.unknown:
        yield "## What this run cannot tell"
        yield ""
        yield from (f"- {escape(text)}" for text in case.unknown)
        yield ""
    yield from _rest(case)


def _unsaid(finding: FindingEntry, run: RunEntry, given: Collection[str]) -> FindingEntry:
    """Return a finding without what the story above says of it already."""
    events = [event.event for event in run.story if event.detector == finding.detector]
    is_told = any(event[1:] in finding.message for event in events)
    fixes = [fix for fix in finding.fixes if fix not in given]
    return finding.model_copy(update={"fixes": fixes} | ({"message": TOLD_ABOVE} if is_told else {}))


def _incident(incident: Incident, events: Sequence[StoryEvent], which: str, x_name: str) -> Iterator[str]:
    yield f"## What happened{which}"
    yield ""
    yield row([x_name.capitalize(), "Before the loss", "Stage", "Sign", "Where"])
    yield "| ---: | ---: | --- | --- | --- |"
    for sign in events:
        ahead = "-" if incident.loss_step is None else str(incident.loss_step - sign.step)
        end = "" if sign.end_step in (None, sign.step) else f" to {sign.end_step}"
        said = f"{cell(sign.signal, 60)} {escape(sign.event)}"
        where = "" if sign.where is None else cell(sign.where)
        yield row([f"{sign.step}{end}", ahead, STAGES.get(sign.stage or "", ""), said, where])
    yield ""
    first = where_first(incident)
    if first is not None:
        yield f"First to show it: {code(first)}."
        yield ""
    if incident.suspects:
        shown = ", ".join(map(str, incident.suspects[:MOST_BATCHES]))
        more = len(incident.suspects) - MOST_BATCHES
        steps = "steps" if len(incident.suspects) > 1 else "step"
        yield f"Batches that look bad by themselves: {steps} {shown}{f' and {more} more' if more > 0 else ''}."
        yield ""
    if incident.explanations:
        yield f"### Why{which}"
        yield ""
        for number, explanation in enumerate(incident.explanations, 1):
            yield from _explanation(number, explanation)
        yield ""


def _explanation(number: int, found: ExplanationEntry) -> Iterator[str]:
    at = found.parameter or found.layer
    where = "" if at is None else f" in {code(at)}"
    yield f"{number}. **{escape(found.title)}**{where} ({escape(found.cause)}, {found.weight:.0%})"
    for text in found.because:
        yield f"   - {escape(text)}"
    for text in found.missing:
        yield f"   - not recorded: {escape(text)}"
    for text in found.fixes:
        yield f"   - try: {escape(text)}"


def change_lines(change: WeightChangeEntry, most: int | None = None) -> Iterator[str]:
    """Yield a change of weights as a table, at most `most` rows of it."""
    yield escape(change_words(change))
    yield ""
    rows = [layer for layer in change.layers if layer.divergence is not None]
    if rows:
        yield row(
            ["Parameter", "Divergence", "Later from earlier", "Earlier from later", "Weight norm", "Gradient norm"]
        )
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for layer in rows[:most]:
        weight = "-" if layer.weight_norm is None else " → ".join(map(figure, layer.weight_norm))
        grad = "-" if layer.grad_norm is None else " → ".join(map(figure, layer.grad_norm))
        factor = "" if layer.grad_ratio is None else f" ({grown(layer.grad_ratio)})"
        shown = [figure(v) for v in (layer.divergence, layer.forward, layer.backward)]
        yield row([cell(layer.layer, 60), *shown, weight, f"{grad}{factor}"])
    if rows:
        yield ""
    notes = without_number(change)
    if most is not None and len(rows) > most:
        notes.insert(0, f"{plural(len(rows) - most, 'more parameter')}; --diff shows all")
    if rows and notes:
        yield from (f"- {escape(note)}" for note in notes)
        yield ""


def _diff(diff: DiffEntry) -> Iterator[str]:
    yield f"# Weights of {escape(label(diff.name))}, steps {diff.change.first} to {diff.change.last}"
    yield ""
    yield from change_lines(diff.change)


def _replay(replay: ReplayEntry) -> Iterator[str]:
    yield "## Train again"
    yield ""
    yield f"**{ACTIONS[replay.action]}.** {' '.join(escape(text) for text in replay_words(replay))}"
    yield ""
    for note in replay.notes:
        yield f"- {escape(note)}"
    yield from (f"- {code(command)}" for command in replay.commands)
    yield ""


def _rest(case: CaseEntry) -> Iterator[str]:
    run = case.run
    if run.notes:
        yield from details("Notes on the log", [escape(n.message) for n in run.notes])
    if run.skipped:
        lines = [f"{code(s.detector)}: {escape(s.reason)}" for s in run.skipped]
        yield from details(f"{plural(len(run.skipped), 'detector')} had nothing to judge", lines)
    settings, more = settings_shown(run)
    lines = [f"{code(key)} = {escape(label(value))}" for key, value in settings]
    if more:
        lines.append(f"{plural(more, 'fact')} that the recorder found out: {code('--format json')} has all")
    if lines:
        yield from details(f"Settings ({len(settings)})", lines)

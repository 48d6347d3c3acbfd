"""Findings as annotations of the workflow run: few, because GitHub shows ten of a kind for one use of an action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainscope.github.artifact import Bundle
from trainscope.github.workflow_commands import MAX_MESSAGE, command
from trainscope.report.document import Document, FindingEntry, RunEntry, SeverityName
from trainscope.report.gate import severity_of
from trainscope.report.text import label, plural, prose

MAX_PER_LEVEL = 10
"""What the runner keeps of each level for one use of an action (actions/runner, ``ExecutionContext``)."""
_LEVELS: tuple[tuple[SeverityName, str], ...] = (("error", "error"), ("warning", "warning"), ("info", "notice"))


def annotate(bundle: Bundle, most: int, workspace: Path, folder: Path) -> list[str]:
    """Return workflow commands, errors first: one a detector and run, and at the end of a level how many more.

    Parameters
    ----------
    most : int
        Annotations of each level, 0 to ``MAX_PER_LEVEL``.
    workspace : Path
        Root of the checkout: a log is named only if it lies in there.
    folder : Path
        Where the logs' relative names begin.
    """
    if most <= 0:
        return []
    document, found = bundle.document, []
    for severity, level in _LEVELS:
        lines = list(_of_check(bundle)) if severity == "error" else []
        if document is not None:
            groups = _groups(document, severity)
            lines += [_annotation(level, run, group, workspace, folder) for run, group in groups]
        if len(lines) > most:
            left = len(lines) - most + 1
            lines = [*lines[: most - 1], command(level, f"and {left} more in the job summary", title="trainscope")]
        found += lines
    return found


def _of_check(bundle: Bundle) -> Iterator[str]:
    result, document = bundle.result, bundle.document
    if result.verdict == "error" and document is None:
        said = prose(result.reason) or "nothing was judged"
        yield command("error", said[:MAX_MESSAGE], title="trainscope: cannot judge")
    elif document is not None:
        for error in document.errors:
            where = f"{label(error.source)}{'' if error.line is None else f' line {error.line}'}"
            yield command("error", f"{where}: {prose(error.reason)}"[:MAX_MESSAGE], title="trainscope: cannot judge")


def _groups(document: Document, severity: SeverityName) -> list[tuple[RunEntry, list[FindingEntry]]]:
    found: list[tuple[RunEntry, list[FindingEntry]]] = []
    for run in document.runs:
        by_detector: dict[str, list[FindingEntry]] = {}
        for finding in run.findings:
            by_detector.setdefault(finding.detector, []).append(finding)
        for group in by_detector.values():
            worst = max(group, key=severity_of)
            # What the baseline has is told in the summary; an annotation is for what is new.
            if worst.severity == severity and any(f.status != "known" for f in group):
                found.append((run, [worst, *(f for f in group if f is not worst)]))
    return found


def _annotation(level: str, run: RunEntry, group: list[FindingEntry], workspace: Path, folder: Path) -> str:
    first = group[0]
    more = f" ({plural(len(group) - 1, 'more finding')} of this kind in this run)" if len(group) > 1 else ""
    message = f"{label(run.name, 60)}: {prose(first.message)}{more}"
    return command(
        level,
        message[:MAX_MESSAGE],
        title=f"{label(first.title)} [{label(first.detector)}]",
        file=_inside(run.source, workspace, folder),
    )


def _inside(source: str, workspace: Path, folder: Path) -> str | None:
    """Return the path of a log from the root of the checkout, None where it is no file in there."""
    try:
        root = workspace.resolve()
        place = (folder / source).resolve()
        inside = place.relative_to(root).as_posix()
        return inside if place.is_file() and not PurePosixPath(inside).is_absolute() else None
    except (OSError, ValueError):
        return None

"""The report as JUnit XML, which every CI system can show: one suite a run, one case a detector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from trainscope.core.run import Run
from trainscope.report.document import Document, ErrorEntry, FindingEntry, RunEntry
from trainscope.report.gate import fails
from trainscope.report.text import label, prose

# https://www.w3.org/TR/xml/#charsets: what is not allowed even as a character reference.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legal(text: str) -> str:
    """Return `text` with what XML cannot hold spelled out."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", prose(text))


def render(document: Document, runs: Mapping[str, Run]) -> str:  # noqa: ARG001 - the renderers' signature
    """Return the report as JUnit XML.

    A detector fails where it has a finding that fails the gate, is skipped where it had nothing to
    judge, and passes otherwise; findings below the gate are in its ``system-out``. A log that could
    not be judged is a case with an ``error``.
    """
    root = ET.Element("testsuites", name="trainscope")
    for run in document.runs:
        _suite(root, run, document)
    if document.errors:
        suite = ET.SubElement(root, "testsuite", name="logs that could not be judged")
        for error in document.errors:
            _error(suite, error)
        _count(suite)
    _count(root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, run: RunEntry, document: Document) -> None:
    suite = ET.SubElement(root, "testsuite", name=legal(label(run.name)), id=run.id)
    found: dict[str, list[FindingEntry]] = {}
    for finding in run.findings:
        found.setdefault(finding.detector, []).append(finding)
    skipped = {s.detector: s.reason for s in run.skipped}
    for detector in dict.fromkeys([*run.judged, *found, *skipped]):
        case = ET.SubElement(suite, "testcase", classname=legal(f"trainscope.{label(run.name)}"), name=legal(detector))
        if detector in skipped:
            ET.SubElement(case, "skipped", message=legal(skipped[detector]))
        quiet: list[FindingEntry] = []
        failing: list[FindingEntry] = []
        for finding in found.get(detector, ()):
            group = failing if fails(finding, document.verdict.fail_on, document.verdict.gate) else quiet
            group.append(finding)
        if failing:
            # One failure a case is what the schema allows and every viewer shows.
            failure = ET.SubElement(case, "failure", type=failing[0].severity, message=legal(failing[0].message))
            failure.text = legal_lines(failing)
        if quiet:
            ET.SubElement(case, "system-out").text = legal_lines(quiet)
    _count(suite)


def legal_lines(findings: list[FindingEntry]) -> str:
    """Return findings as plain lines, fixes indented below."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity}: {legal(finding.title)}: {legal(finding.message)}")
        lines += [f"  - {legal(fix)}" for fix in finding.fixes]
    return "\n".join(lines)


def _error(suite: ET.Element, error: ErrorEntry) -> None:
    case = ET.SubElement(suite, "testcase", classname="trainscope.read", name=legal(label(error.source)))
    where = "" if error.line is None else f"line {error.line}: "
    ET.SubElement(case, "error", type=error.kind, message=legal(f"{where}{error.reason}"))


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    element.set("failures", str(len(element.findall(".//failure"))))
    element.set("errors", str(len(element.findall(".//error"))))
    element.set("skipped", str(len(element.findall(".//skipped"))))

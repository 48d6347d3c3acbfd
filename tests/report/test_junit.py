from __future__ import annotations

from xml.etree import ElementTree as ET

from trainscope.report.junit import render
from trainscope.report.pipeline import Analysis


def parsed(analysis: Analysis) -> ET.Element:
    return ET.fromstring(render(analysis.document, analysis.runs).encode("utf-8"))


def test_the_report_is_as_agreed(several: Analysis, golden):
    golden("report/several.junit.xml", render(several.document, several.runs))


def test_every_detector_of_every_run_is_a_case(several: Analysis):
    suite = parsed(several)[0]
    cases = [case.get("name") for case in suite.findall("testcase")]
    assert cases == ["non_finite", "spikes", "no_eval", "plateau", "slowdown"]


def test_only_findings_that_fail_the_gate_are_failures(several: Analysis):
    suite = parsed(several)[0]
    outcome = {c.get("name"): [child.tag for child in c] for c in suite.findall("testcase")}
    assert outcome == {
        "non_finite": ["failure"],
        "spikes": ["failure"],
        "no_eval": ["system-out"],
        "plateau": [],
        "slowdown": ["skipped"],
    }


def test_a_log_that_could_not_be_judged_is_an_error(several: Analysis):
    error = parsed(several).find(".//error")
    assert error is not None
    assert error.get("message") == "line 7: not a number: 'abc'"


def test_the_counts_are_those_of_the_cases(several: Analysis):
    root = parsed(several)
    assert [root.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["7", "2", "1", "1"]
    assert sum(int(s.get("tests", 0)) for s in root.findall("testsuite")) == 7


def test_hostile_names_leave_valid_xml_of_the_same_shape(hostile: str, named):
    def shape(root: ET.Element) -> list[tuple[str, list[str]]]:
        return [(e.tag, sorted(e.attrib)) for e in root.iter()]

    assert shape(parsed(named(hostile))) == shape(parsed(named("plain")))

import pytest

from trainscope.report.survey_build import survey
from trainscope.site.index import IndexView, newest_first, row_of, rows_of, runs_script, told_apart
from trainscope.site.sparks import LETTERS, spark_paths, sparkline
from trainscope.site.survey import case_of, survey_of

from .runs import record, rich


@pytest.fixture(scope="module")
def records():
    return [record(rich("a", seed=1)), record(rich("b", seed=2)), record(rich("calm", spike=None, seed=3))]


def test_runs_that_broke_alike_are_one_cluster_without_their_logs(records):
    found = survey_of(records)
    assert found is not None
    (both,) = [c for c in found.clusters if len(c.members) == 2]
    assert sorted(both.members) == sorted([records[0].id, records[1].id])


def test_what_a_record_says_of_an_incident_is_what_its_run_said(records):
    case, one = case_of(records[0]), records[0]
    assert case.main is not None
    assert case.main.onset == one.entry.incidents[one.main_incident].onset
    assert [s.signal for s in case.main.signs]
    assert len(case.findings) == len(one.entry.findings)
    assert survey([case], [one.entry]).members[0].onset == case.onset


def test_the_newest_run_comes_first(records):
    assert [r.entry.name for r in newest_first(records)] == ["calm", "b", "a"]


def test_a_spike_of_one_step_is_the_highest_letter_of_a_small_curve(records):
    letters = sparkline(records[0].curves[0])
    assert len(letters) == 40
    assert letters[30] == LETTERS[63]
    line, bad = spark_paths(letters)
    assert line.startswith("M1 ")
    assert bad == ""


def test_a_nan_is_a_mark_of_its_own_in_a_small_curve():
    line, bad = spark_paths("A!B")
    assert bad == "M56 21v5"
    assert line.count("M") == 2


def test_a_name_in_the_list_cannot_end_its_script():
    assert "<" not in runs_script([row_of(record(rich("</script><script>alert(1)</script>")))])


def entries(records, *named):
    return [records[0].entry.model_copy(update=dict(zip(("name", "source", "id"), n, strict=True))) for n in named]


def test_runs_of_one_name_are_told_apart_by_where_their_sources_differ(records):
    named = entries(
        records,
        ("smoke", "a/smoke", "1" * 12),
        ("smoke", "b/smoke", "2" * 12),
        ("smoke", "b/smoke.csv", "3" * 12),
        ("other", "b/other", "4" * 12),
    )
    assert told_apart(named) == ["a", "b", "smoke.csv", ""]


def test_runs_of_one_name_and_source_are_told_apart_by_their_ids(records):
    named = entries(records, ("x", "log.txt", "abcdef012345"), ("x", "log.txt", "fedcba543210"))
    assert told_apart(named) == ["abcdef", "fedcba"]


def test_many_runs_of_one_name_take_no_longer_each(records):
    named = entries(records, *(("smoke", f"{i}/deep/er/smoke", f"{i:012x}") for i in range(3_000)))
    assert told_apart(named)[1_234] == "1234"


def test_a_column_that_no_run_fills_is_left_out(records):
    rows = rows_of(records)
    assert IndexView(tuple(rows), "", (), None, (), ()).absent == ()
    bare = records[0].model_copy(update={"about": records[0].about.model_copy(update={"branch": None, "commit": None})})
    assert IndexView(tuple(rows_of([bare])), "", (), None, (), ()).absent == ("branch", "commit")

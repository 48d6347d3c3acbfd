"""One comment a check, whatever else happens on the pull request."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace

import pytest
from tests.github.archives import archive
from tests.github.conftest import PULL_EVENT, inputs
from tests.github.fake_github import HEAD, pull

from trainscope.core.errors import ConfigError, GitHubError, ReadError
from trainscope.github.api import Api
from trainscope.github.artifact import DOCUMENT, Bundle
from trainscope.github.comment import Comments, marker_of
from trainscope.github.job import TOKEN
from trainscope.github.reporting import comment_on_run, report
from trainscope.github.result import FILE, BaselineSource, CheckResult
from trainscope.github.told import Links, pieces_of

MARKER = marker_of("default")


@pytest.fixture
def comments(api):
    return Comments(api, "example/sample", 1)


def test_it_is_written_once_and_changed_in_place_behind_two_hundred_others(comments, github):
    for number in range(130):
        github.add(f"talk {number}")
    assert comments.put(f"{MARKER}\nred", MARKER, create=True).what == "created"
    for number in range(90):
        github.add(f"more talk {number}")
    assert comments.put(f"{MARKER}\ngreen", MARKER, create=False).what == "updated"
    assert comments.put(f"{MARKER}\ngreen", MARKER, create=True).what == "unchanged"
    assert [r["method"] for r in github.writes()] == ["POST", "PATCH"]
    assert [c["body"] for c in github.comments if c["user"]["login"].endswith("[bot]")] == [f"{MARKER}\ngreen"]


def test_nothing_is_written_where_there_is_nothing_to_say(comments, github):
    assert comments.put(f"{MARKER}\n", MARKER, create=False).what == "not needed"
    assert github.writes() == []


def test_a_comment_of_someone_else_with_our_marker_is_left_alone(comments, github):
    spoofed = github.add(f"{MARKER}\nspoofed", "octocat")
    github.add(f"talk\n{MARKER}", "github-actions[bot]")
    assert comments.put(f"{MARKER}\nours", MARKER, create=True).what == "created"
    assert spoofed["body"].endswith("spoofed")
    assert len(github.comments) == 3


def test_two_keys_are_two_comments(comments, github):
    for key in ("one", "two", "one"):
        marker = marker_of(key)
        comments.put(f"{marker}\n{key}", marker, create=True)
    assert len(github.comments) == 2


def test_jobs_that_race_leave_one_comment(github):
    def put(number: int) -> None:
        api = Api(github.url, "secret", sleep=lambda _: None)
        Comments(api, "example/sample", 1).put(f"{MARKER}\n{number}", MARKER, create=True)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    "failures",
    [
        [(502, {}, "Bad gateway"), (503, {}, "")],
        [(429, {"Retry-After": "7"}, "too many")],
        [(403, {}, "You have exceeded a secondary rate limit")],
    ],
    ids=["502", "429", "secondary"],
)
def test_a_busy_github_is_asked_again(github, failures):
    waited: list[float] = []
    api = Api(github.url, "secret", sleep=waited.append)
    github.failures = list(failures)
    assert Comments(api, "example/sample", 1).put(f"{MARKER}\nx", MARKER, create=True).what == "created"
    assert len(waited) == len(failures)
    asked = float(failures[0][1].get("Retry-After", 1))
    assert asked <= waited[0] <= 1.3 * asked
    assert len(github.comments) == 1


def test_it_gives_up_after_five_tries_with_one_line(github):
    github.failures = [(502, {}, "Bad gateway")] * 9
    api = Api(github.url, "secret", sleep=lambda _: None)
    with pytest.raises(GitHubError, match=r"POST .*: 502 Bad gateway, 5 times"):
        Comments(api, "example/sample", 1).put(f"{MARKER}\nx", MARKER, create=True)


def test_an_api_that_is_not_there_is_one_line():
    with pytest.raises(GitHubError, match="cannot be reached"):
        Api("http://127.0.0.1:9", "secret", sleep=lambda _: None).get("/x")


def test_a_token_that_may_not_write_is_a_note_and_the_rest_is_written(bundle, github, api, job, tmp_path):
    github.read_only = True
    summary = tmp_path / "summary"
    told = report(bundle, inputs(comment="auto"), job(PULL_EVENT), api, summary)
    assert told.comment_url == ""
    assert [line.split(" ")[0] for line in told.commands] == ["::warning", "::notice"]
    assert "pull-requests: write" in told.commands[-1]
    assert "Loss spike" in summary.read_text()


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"X-RateLimit-Remaining": "0"}, "API rate limit exceeded for installation ID 1."),
        ({"Retry-After": "600"}, "You have exceeded a secondary rate limit"),
    ],
    ids=["hour is spent", "ten minutes"],
)
def test_a_limit_that_lasts_is_said_at_once_and_blames_no_permission(headers, message, bundle, github, job):
    waited: list[float] = []
    github.failures = [(403, headers, message)]
    told = report(bundle, inputs(comment="auto"), job(PULL_EVENT), Api(github.url, "secret", sleep=waited.append), None)
    assert told.commands[-1].startswith("::warning title=trainscope::the comment was not written: ")
    assert message in told.commands[-1]
    assert waited == []


def test_what_github_says_of_a_refusal_is_told(bundle, github, api, job):
    github.failures = [(403, {}, "Unable to create comment because issue is locked.")]
    told = report(bundle, inputs(comment="auto"), job(PULL_EVENT), api, None)
    assert "may not write one" in told.commands[-1]
    assert "because issue is locked" in told.commands[-1]


def test_a_secret_that_was_pasted_with_its_line_end_is_the_token(job):
    assert job(PULL_EVENT, **{TOKEN: " secret\n"}).token == "secret"


def test_a_crash_is_not_said_to_be_compared(tmp_path, github, api, job):
    source = BaselineSource(sha="d" * 40, start="d" * 40, distance=0, run_id=1)
    crash = CheckResult(verdict="error", exit_code=4, reason="ended with exit code 1", baseline=source)
    summary = tmp_path / "summary"
    report(Bundle(crash, None, ()), inputs(comment="never"), job(PULL_EVENT), api, summary)
    assert "Nothing was compared with the baseline, `dddddddddd`, recorded on" in summary.read_text()
    assert "Compared" not in summary.read_text()


def test_a_run_that_a_newer_commit_overtook_writes_nothing(bundle, github, api, job):
    github.pulls = [pull(1, head="c" * 40)]
    told = report(bundle, inputs(comment="always"), job(PULL_EVENT), api, None)
    assert "moved on" in told.commands[-1]
    assert github.writes() == []


RUN_EVENT = {
    "workflow_run": {
        "id": 4242,
        "event": "pull_request",
        "conclusion": "failure",
        "head_branch": "feat",
        "head_sha": HEAD,
        "head_repository": {"owner": {"login": "contributor"}},
        "pull_requests": [],
    }
}


@pytest.fixture
def packed(left):
    return {name: (left / name).read_bytes() for name in (FILE, DOCUMENT)}


def test_a_fork_gets_its_comment_from_the_artifact_and_the_store_never_sees_the_token(packed, github, api, job):
    github.artifacts[5] = ("trainscope", 4242, archive(packed))
    told = comment_on_run(inputs(), job(RUN_EVENT, "workflow_run"), api)
    assert told.comment_url == "https://github.example/c/1"
    assert "Loss spike" in github.comments[0]["body"]
    assert "actions/runs/4242" in github.comments[0]["body"]
    assert [r["token"] for r in github.journal if r["path"] == "/blob"] == [None]


def test_an_artifact_chooses_neither_the_pull_request_nor_the_key_nor_the_commit(packed, github, api, job):
    lie = json.loads(packed[FILE]) | {"key": "other", "head": "d" * 40, "number": 7, "verdict": "pass"}
    github.artifacts[5] = ("trainscope", 4242, archive(packed | {FILE: json.dumps(lie).encode()}))
    comment_on_run(inputs(comment="always"), job(RUN_EVENT, "workflow_run"), api)
    body = github.comments[0]["body"]
    assert body.startswith(MARKER)
    assert HEAD[:10] in body
    assert "dddddddddd" not in body
    assert "ended with `failure`" in body


@pytest.mark.parametrize(
    "change",
    [{"event": "push"}, {"head_sha": "e" * 40}, {"head_branch": "other"}],
    ids=["no pull request", "another commit", "another branch"],
)
def test_without_an_open_pull_request_at_its_commit_nothing_is_written(change, packed, github, api, job):
    github.artifacts[5] = ("trainscope", 4242, archive(packed))
    told = comment_on_run(inputs(), job({"workflow_run": RUN_EVENT["workflow_run"] | change}, "workflow_run"), api)
    assert "no open pull request" in told.commands[0]
    assert github.writes() == []


def test_a_poisoned_artifact_writes_nothing(packed, github, api, job):
    github.artifacts[5] = ("trainscope", 4242, archive(packed | {"../../x": b""}))
    with pytest.raises(ReadError, match="leads out"):
        comment_on_run(inputs(), job(RUN_EVENT, "workflow_run"), api)
    assert github.writes() == []


def test_never_writes_nothing_and_asks_nothing(packed, github, api, job):
    github.artifacts[5] = ("trainscope", 4242, archive(packed))
    told = comment_on_run(inputs(comment="never"), job(RUN_EVENT, "workflow_run"), api)
    assert "says never" in told.commands[0]
    assert github.journal == []


def test_an_event_of_another_kind_is_refused(api, job):
    with pytest.raises(ConfigError, match="no workflow_run"):
        comment_on_run(inputs(), job(PULL_EVENT), api)


def test_the_curve_beside_a_run_is_its_own(bundle: Bundle):
    (record,) = bundle.records
    links = Links("")
    own = pieces_of(bundle, links).head
    (drawn,) = re.findall("`([^`]*[▁▂▃▄▅▆▇█][^`]*)`", own)
    other = record.model_copy(update={"entry": record.entry.model_copy(update={"id": "0" * 12})})
    assert pieces_of(replace(bundle, records=(other, record)), links).head == own
    without = pieces_of(replace(bundle, records=(other,)), links).head
    assert drawn not in without

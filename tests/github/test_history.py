"""The branch that keeps runs, against real repositories."""

from __future__ import annotations

import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.github.conftest import PULL_EVENT, git
from tests.github.fake_github import HEAD

from trainscope.core.errors import ConfigError, GitHubError
from trainscope.github.baseline import find_baseline
from trainscope.github.git import repository
from trainscope.github.history import Entry, History
from trainscope.github.record import check_event, checked_branch, entry_of, export_records
from trainscope.report.against import read_baselines
from trainscope.site.bundle import from_text

BRANCH = "trainscope-data"


def append(remote, number: int, keep: int = 0, sha: str = HEAD) -> int:
    with repository(f"file://{remote}", "") as one:
        entry = Entry(number, 1, sha, "default")
        return History(one, BRANCH).append(entry, {"check.json": f"{number}".encode()}, keep=keep)


def files(server) -> list[str]:
    return git("ls-tree", "-r", "--name-only", BRANCH, cwd=server).splitlines()


@pytest.mark.slow
def test_twelve_jobs_at_once_lose_nothing(server):
    random.seed(0)
    with ThreadPoolExecutor(12) as pool:
        lost = list(pool.map(lambda n: append(server, n), range(1, 13)))
    assert len(files(server)) == 12
    assert git("rev-list", "--count", BRANCH, cwd=server) == "12"
    assert max(lost) > 0, "the jobs did not race"


def test_recording_the_same_again_changes_nothing(server):
    append(server, 1)
    tip = git("rev-parse", BRANCH, cwd=server)
    append(server, 1)
    assert git("rev-parse", BRANCH, cwd=server) == tip


@pytest.mark.slow
def test_the_branch_is_cut_to_the_newest_and_their_files_are_whole(server):
    for number in range(1, 8):
        append(server, number, keep=5)
    assert sorted(int(f.split("/")[3].split("-")[0]) for f in files(server)) == [3, 4, 5, 6, 7]
    assert git("rev-list", "--count", BRANCH, cwd=server) == "1"
    assert [git("show", f"{BRANCH}:{f}", cwd=server) for f in files(server)] == ["3", "4", "5", "6", "7"]
    subprocess.run(["git", "fsck", "--strict"], cwd=server, check=True, capture_output=True)


def push_file(server, tmp_path, branch: str = BRANCH) -> None:
    """Add a README to a branch as a person would."""
    clone = tmp_path / f"clone-{branch}"
    git("init", "-q", "-b", branch, str(clone), cwd=tmp_path)
    if git("branch", "--list", branch, cwd=server):
        git("pull", "-q", f"file://{server}", branch, cwd=clone)
    (clone / "READ ME.md").write_text("about this branch")
    git("add", ".", cwd=clone)
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "readme", cwd=clone)
    git("push", "-q", f"file://{server}", branch, cwd=clone)


@pytest.mark.slow
def test_files_that_somebody_added_to_the_branch_stay_even_when_it_is_cut(server, tmp_path):
    append(server, 1)
    push_file(server, tmp_path)
    for number in range(2, 8):
        append(server, number, keep=3)
    assert git("show", f"{BRANCH}:READ ME.md", cwd=server) == "about this branch"
    assert len(files(server)) == 1 + 3
    assert git("rev-list", "--count", BRANCH, cwd=server) == "1"
    subprocess.run(["git", "fsck", "--strict"], cwd=server, check=True, capture_output=True)


def test_a_branch_of_something_else_is_never_written(server, tmp_path, main_job):
    push_file(server, tmp_path)
    tip = git("rev-parse", BRANCH, cwd=server)
    with pytest.raises(GitHubError, match="holds other files and no recorded run"):
        append(server, 1)
    assert git("rev-parse", BRANCH, cwd=server) == tip
    for branch in ("main", "feat"):
        with pytest.raises(ConfigError, match=f"{branch} is the branch of the code"):
            checked_branch(branch, main_job(GITHUB_REF="refs/heads/feat"))


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59+00:00", "1970-01-01T00:00:00Z", "soon", 7, None])
def test_a_date_that_no_clock_shows_is_no_date(stamp, left, main_job):
    _, found, notes = entry_of(left, main_job(event={"head_commit": {"timestamp": stamp}}))
    assert notes == []
    (record,) = [from_text(text.decode(), name) for name, text in found.items() if name.endswith("record.js")]
    assert record.about.started is None


@pytest.mark.slow
def test_a_damaged_record_on_the_branch_costs_its_page_alone(server, left, main_job, tmp_path):
    from trainscope.core.settings import Settings
    from trainscope.site.build import Options, build

    record(left, main_job())
    with repository(main_job().remote, "") as one:
        text = b"tsRun({broken"
        entry = Entry(43, 1, HEAD, "default")
        History(one, BRANCH).append(entry, {"records/aaaaaaaaaaaa/record.js": text, "check.json": b"{}"})
        assert export_records(History(one, BRANCH), tmp_path / "records") == 2
    built = build([str(tmp_path / "records")], tmp_path / "site", Settings(), Options(jobs=1))
    assert built.runs == 1
    assert len(built.failures) == 1
    assert "aaaaaaaaaaaa" in built.failures[0]


def test_a_branch_that_may_not_be_pushed_is_one_line_at_once(server):
    hook = server / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(GitHubError, match="contents: write"):
        append(server, 1)


def test_a_repository_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(GitHubError, match="git ls-remote"):
        append(tmp_path / "gone", 1)


@pytest.mark.parametrize("name", ["a..b", "-x", "a b", "a@{1}", "x.lock", "../x", "a//b", "x/"])
def test_what_is_no_name_of_a_branch_is_refused(name, tmp_path):
    with repository(f"file://{tmp_path}", "") as one, pytest.raises(ConfigError, match="data-branch"):
        History(one, name)


def test_the_token_is_in_no_argument_and_no_file(tmp_path):
    with repository("https://github.example/o/r", "hunter2-token") as one:
        config = "".join(p.read_text(errors="replace") for p in one.folder.rglob("*") if p.is_file())
        assert "hunter2" not in config
        assert one._environment()["GIT_CONFIG_KEY_0"] == "http.https://github.example/.extraheader"


@pytest.fixture
def main_job(server, job):
    url = f"file://{server.parents[1]}"

    def make(sha: str = HEAD, name: str = "push", event: dict | None = None, **env: str):
        stamp = {"head_commit": {"timestamp": "2026-11-30T06:00:00+00:00"}, "before": "b" * 40}
        return job(stamp if event is None else event, name, GITHUB_SERVER_URL=url, GITHUB_SHA=sha, **env)

    return make


def record(left, job) -> None:
    entry, found, notes = entry_of(left, job)
    assert notes == []
    with repository(job.remote, "") as one:
        History(one, BRANCH).append(entry, found)


def test_a_recorded_run_is_the_baseline_of_a_pull_request_and_a_page_of_the_site(left, main_job, api, github, tmp_path):
    record(left, main_job())
    github.commits = ["9" * 40, "8" * 40, HEAD]
    pull_job = main_job(name="pull_request", event=PULL_EVENT)
    found = find_baseline(pull_job, api, BRANCH, "default", tmp_path / "baseline")
    assert found.source is not None
    assert (found.source.sha, found.source.start, found.source.distance) == (HEAD, "9" * 40, 2)
    assert [run.name for run in read_baselines([str(found.folder)])] == ["loss_spike"]
    with repository(pull_job.remote, "") as one:
        assert export_records(History(one, BRANCH), tmp_path / "records") == 1
    (made,) = (tmp_path / "records").glob("*/record.js")
    assert f'"commit":"{HEAD}"' in made.read_text()
    assert '"branch":"main"' in made.read_text()


def test_no_baseline_is_said(left, main_job, api, github, tmp_path):
    pull_job = main_job(name="pull_request", event=PULL_EVENT)
    github.commits = ["9" * 40]
    assert "there is no branch" in find_baseline(pull_job, api, BRANCH, "default", tmp_path).note
    record(left, main_job())
    assert "has no run of check default at 9999999999" in find_baseline(pull_job, api, BRANCH, "default", tmp_path).note
    github.commits = [HEAD]
    assert "has no run of check other" in find_baseline(pull_job, api, BRANCH, "other", tmp_path).note


def test_only_the_default_branch_is_recorded(main_job):
    check_event(main_job())
    for name in ("pull_request", "pull_request_target", "workflow_run", "merge_group"):
        with pytest.raises(ConfigError, match="is not recorded"):
            check_event(main_job(name=name))
    with pytest.raises(ConfigError, match="refs/heads/feat is not recorded"):
        check_event(main_job(GITHUB_REF="refs/heads/feat"))


def test_a_schedule_whose_event_names_no_repository_is_of_the_default_branch(main_job):
    check_event(main_job(name="schedule", event={"schedule": "0 4 * * *"}, GITHUB_REF="refs/heads/master"))
    with pytest.raises(ConfigError, match="refs/heads/master is not recorded"):
        check_event(main_job(event={}, GITHUB_REF="refs/heads/master"))


def test_a_bundle_of_another_commit_is_refused(left, main_job, tmp_path):
    copy = shutil.copytree(left, tmp_path / "copy")
    with pytest.raises(ConfigError, match="is of commit aaaaaaaaaa"):
        entry_of(copy, main_job(sha="f" * 40))

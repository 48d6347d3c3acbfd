"""The action and its example workflows from the event to the comment, the branch and the site; offline, under act."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.action.act import Ran, run_act
from tests.action.conftest import ROOT
from tests.github.conftest import git
from tests.github.fake_github import BASE, HEAD, pull
from tests.scripts import classifier

EXAMPLES = ROOT / "examples" / "workflows"
TRAIN_LOG = """
import pathlib, sys
pathlib.Path("runs").mkdir(exist_ok=True)
log = pathlib.Path("wanted.jsonl").read_text()
pathlib.Path(sys.argv[-1]).write_text(log)
print("::error::a line of the training")
"""
OUTCOMES = """
name: outcomes
on: push
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - id: pass
        uses: trainscope/action@v1
        with: {logs: good.jsonl, key: pass}
      - id: fail
        continue-on-error: true
        uses: trainscope/action@v1
        with: {logs: bad.jsonl, key: fail}
      - id: crash
        continue-on-error: true
        uses: trainscope/action@v1
        with:
          run: |
            env | grep -c fake-token && echo "a token leaked"
            echo "verdict=pass" >> "${GITHUB_OUTPUT:-/dev/null}"
            echo "::error title=forged::of the training"
            exit 7
          key: crash
          fail-on: never
      - id: nodata
        continue-on-error: true
        uses: trainscope/action@v1
        with: {logs: "none/*.jsonl", key: nodata}
      - id: timeout
        continue-on-error: true
        uses: trainscope/action@v1
        with: {run: sleep 60, run-timeout: "1", key: timeout}
      - id: wrong
        continue-on-error: true
        uses: trainscope/action@v1
        with: {logs: good.jsonl, key: "$(touch pwned)"}
      - name: Look
        env:
          SAW: >-
            ${{ steps.pass.outputs.verdict }}-${{ steps.pass.outcome }}
            ${{ steps.fail.outputs.verdict }}-${{ steps.fail.outcome }}-${{ steps.fail.outputs.warnings }}
            ${{ steps.crash.outputs.verdict }}-${{ steps.crash.outcome }}-${{ steps.crash.outputs.exit-code }}
            ${{ steps.nodata.outputs.verdict }}-${{ steps.nodata.outcome }}-${{ steps.nodata.outputs.exit-code }}
            ${{ steps.timeout.outputs.verdict }}-${{ steps.timeout.outcome }}-${{ steps.timeout.outputs.exit-code }}
            ${{ steps.wrong.outputs.verdict }}-${{ steps.wrong.outcome }}
        run: |
          test ! -e pwned
          echo "saw=$SAW" >> "$GITHUB_OUTPUT"
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A repository that trains."""
    folder = tmp_path / "sample"
    (folder / ".github/workflows").mkdir(parents=True)
    for name, log in (("good", "healthy"), ("bad", "loss_spike"), ("nan", "nan")):
        shutil.copyfile(ROOT / f"examples/logs/{log}.jsonl", folder / f"{name}.jsonl")
    (folder / "train.py").write_text(TRAIN_LOG)
    (folder / "requirements.txt").write_text("")
    # Of the standard library by name, and not to be imported by anything of ours.
    (folder / "json.py").write_text("raise SystemExit('json.py of the workspace was imported')\n")
    (folder / "trainscope.py").write_text("raise SystemExit('trainscope.py of the workspace was imported')\n")
    git("init", "-q", "-b", "main", ".", cwd=folder)
    commit(folder)
    return folder


def commit(folder: Path) -> str:
    git("add", "-A", cwd=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


@pytest.fixture
def run(act, sample, action, tools, github, tmp_path):
    """Run one workflow of the sample repository."""
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    count = iter(range(100))

    def call(workflow: str, event_name: str, event: dict, run_id: int = 1) -> Ran:
        env = {
            "STUB_ARTIFACTS": str(artifacts),
            "GITHUB_REPOSITORY": "example/sample",
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_API_URL": github.url,
        }
        about = {"repository": {"full_name": "example/sample", "default_branch": "main"}}
        place = f".github/workflows/{workflow}"
        home = tmp_path / f"home{next(count)}"
        home.mkdir()
        # Only git's own settings can lead it elsewhere: act asks the server's address for actions too.
        (home / ".gitconfig").write_text(f'[url "file://{tmp_path}/server/"]\n\tinsteadOf = https://github.com/\n')
        # act says itself where the tools are, whatever RUNNER_TOOL_CACHE is.
        (home / "actions").mkdir()
        (home / "actions/tool_cache").symlink_to(tools)
        there = sorted(tools.glob("trainscope/*"))
        ran = run_act(sample, place, event_name, about | event, env, action, home)
        assert sorted(tools.glob("trainscope/*")) == there, "packages were fetched"
        return ran

    call.artifacts = artifacts
    return call


def test_every_outcome_is_a_verdict_and_no_other_text_is_obeyed(run, sample):
    (sample / ".github/workflows/outcomes.yml").write_text(OUTCOMES)
    commit(sample)
    ran = run("outcomes.yml", "push", {})
    assert ran.jobs == {"check": "success"}, ran.text[-4000:]
    (saw,) = [c["arg"] for c in ran.of("set-output") if c.get("name") == "saw"]
    assert saw.split() == [
        "pass-success",
        "fail-failure-1",
        "error-failure-4",
        "error-failure-3",
        "error-failure-4",
        "error-failure",
    ]
    assert "a token leaked" not in ran.text
    titles = [c["kvPairs"]["title"] for kind in ("error", "warning") for c in ran.of(kind) if c.get("kvPairs")]
    assert sorted(titles) == sorted(
        ["Loss spike [spikes]", *["trainscope: cannot judge"] * 3, "trainscope: wrong input"]
    )
    summaries = [c["content"] for c in ran.of("summary")]
    assert len(summaries) == 5
    assert summaries[0].startswith("## ✅ Pass")
    assert "| 🟡 | Loss spike | 350 | 7.845 | 55.02 |" in summaries[1]
    assert "ended with exit code 7" in summaries[2]
    assert "::error title=forged::of the training" in summaries[2]
    assert "not done in 1 s" in summaries[4]


FORK = {
    "number": 1,
    "pull_request": {"number": 1, "head": {"sha": HEAD, "ref": "feat"}, "base": {"sha": BASE, "ref": "main"}},
}


def ended(conclusion: str, run_id: int, event: str = "pull_request", branch: str = "feat") -> dict:
    owner = {"full_name": "contributor/sample", "owner": {"login": "contributor"}}
    about = {"id": run_id, "event": event, "conclusion": conclusion, "head_branch": branch, "head_sha": HEAD}
    return {"action": "completed", "workflow_run": about | {"head_repository": owner, "pull_requests": []}}


def packed(folder: Path) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as made:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            made.write(path, path.relative_to(folder).as_posix())
    return raw.getvalue()


def test_a_fork_is_gated_without_a_token_and_commented_by_the_second_workflow(run, sample, github):
    for name in ("gate-log.yml", "comment.yml"):
        shutil.copyfile(EXAMPLES / name, sample / ".github/workflows" / name)
    github.read_only = True
    for number, (log, result) in enumerate((("nan", "failure"), ("good", "success")), 1):
        shutil.copyfile(sample / f"{log}.jsonl", sample / "wanted.jsonl")
        commit(sample)
        ran = run("gate-log.yml", "pull_request", FORK, number)
        assert ran.jobs == {"check": result}, ran.text[-4000:]
        assert github.writes() == []
        github.artifacts[number] = ("trainscope", number, packed(run.artifacts / f"{number}" / "trainscope"))
    github.read_only = False
    for number, sign in ((1, "❌ Fail"), (2, "✅ Pass")):
        ran = run("comment.yml", "workflow_run", ended("failure" if number == 1 else "success", number), 50 + number)
        assert ran.jobs == {"comment": "success"}, ran.text[-4000:]
        assert [c["user"]["login"] for c in github.comments] == ["github-actions[bot]"]
        assert github.comments[0]["body"].split("\n")[1].startswith(f"## {sign}")
    assert [r["method"] for r in github.writes()] == ["POST", "PATCH"]


def test_main_is_recorded_and_published_and_is_the_baseline_of_a_pull_request(run, sample, github, tmp_path):
    pytest.importorskip("torch")
    remote = tmp_path / "server/example/sample"
    remote.mkdir(parents=True)
    git("init", "-q", "--bare", ".", cwd=remote)
    for name in ("smoke-gate.yml", "publish-site.yml"):
        shutil.copyfile(EXAMPLES / name, sample / ".github/workflows" / name)
    (sample / "train.py").write_text(classifier())
    (sample / "json.py").unlink()  # the training itself would import it
    (sample / "trainscope.toml").write_text("steps = 60\n[detectors.cost_change]\nenabled = false\n")
    sha = commit(sample)
    main = {"ref": "refs/heads/main", "before": BASE, "head_commit": {"timestamp": "2026-11-30T06:00:00+00:00"}}
    ran = run("smoke-gate.yml", "push", main, 7)
    assert ran.jobs == {"check": "success", "record": "success"}, ran.text[-4000:]
    kept = git("ls-tree", "-r", "--name-only", "trainscope-data", cwd=remote).splitlines()
    place = f"runs/{sha}/default/7-1/"
    assert {re.sub(r"[0-9a-f]{12}", "ID", name.removeprefix(place)) for name in kept} == {
        "check.json",
        "findings.json",
        "bundle/00-ID.arrow",
        "records/ID/record.js",
    }

    ran = run("publish-site.yml", "workflow_run", ended("success", 7, "push", "main"), 8)
    assert ran.jobs == {"build": "success", "deploy": "success"}, ran.text[-4000:]
    (page,) = (run.artifacts / "published").glob("runs/*/index.html")
    assert sha[:9] in (run.artifacts / "published/runs.js").read_text()
    assert page.parent.joinpath("thumb-dark.png").is_file()

    github.commits = [sha]
    github.pulls = [pull(1)]
    (sample / "train.py").write_text(classifier("pass"))
    commit(sample)
    ran = run("smoke-gate.yml", "pull_request", FORK, 9)
    assert ran.jobs["check"] == "failure", ran.text[-4000:]
    found = json.loads((run.artifacts / "9/trainscope/check.json").read_text())
    assert (found["baseline"]["sha"], found["baseline"]["distance"]) == (sha, 0)
    body = github.comments[0]["body"]
    assert f"Compared with `{sha[:10]}`, recorded on `trainscope-data`" in body
    assert "Gradients not cleared" in body
    assert re.search(r"\*\*[1-9]\d* new\*\*", body)

"""One judged run for all tests of the room, a fake GitHub, and a bare repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.github.fake_github import BASE, HEAD, serving

from trainscope.cli.ci import run_pipeline
from trainscope.core.settings import Settings
from trainscope.github.api import Api
from trainscope.github.artifact import Bundle, read_folder
from trainscope.github.inputs import PREFIX, Inputs
from trainscope.github.job import TOKEN, Job, job_of
from trainscope.github.result import FILE, CheckResult

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a check of a log with a spike left; read only."""
    folder = tmp_path_factory.mktemp("left")
    logs = [str(ROOT / "examples/logs/loss_spike.jsonl")]
    run_pipeline(Settings(logs=logs), folder)
    result = CheckResult(verdict="fail", exit_code=1, head=HEAD)
    (folder / FILE).write_text(result.to_json())
    return folder


@pytest.fixture
def bundle(left: Path) -> Bundle:
    return read_folder(left)


@pytest.fixture
def github():
    with serving() as server:
        yield server


@pytest.fixture
def api(github) -> Api:
    return Api(github.url, "secret", sleep=lambda _: None)


@pytest.fixture
def job(tmp_path: Path, github):
    """Make a job from an event."""

    def make(event: dict, name: str = "pull_request", **env: str) -> Job:
        path = tmp_path / "event.json"
        path.write_text(json.dumps(event))
        given = {
            "GITHUB_REPOSITORY": "example/sample",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_SHA": HEAD,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_RUN_ID": "42",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_API_URL": github.url,
            "GITHUB_WORKSPACE": str(tmp_path),
            "RUNNER_TEMP": str(tmp_path),
            TOKEN: "secret",
        }
        return job_of(given | env)

    return make


PULL_EVENT = {"pull_request": {"number": 1, "head": {"sha": HEAD}, "base": {"sha": BASE}}}


def inputs(**given: str) -> Inputs:
    return Inputs({f"{PREFIX}{key.upper()}": value for key, value in given.items()})


def git(*args: str, cwd: Path) -> str:
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A bare repository that has partial clones, as GitHub's; returns its folder."""
    folder = tmp_path / "server" / "example" / "sample"
    folder.mkdir(parents=True)
    git("init", "-q", "--bare", ".", cwd=folder)
    git("config", "uploadpack.allowFilter", "true", cwd=folder)
    git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=folder)
    return folder

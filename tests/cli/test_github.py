"""The steps of the action with variables and events that are missing, damaged or wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainscope.cli.main import run
from trainscope.github.inputs import PREFIX

STEPS = ("check", "report", "comment", "record", "site")


@pytest.fixture
def step(tmp_path, monkeypatch, capsys):
    """Run a step in the environment of a job, changed by some variables; return its exit code and what it said."""
    event = tmp_path / "event.json"
    event.write_text("{}")
    job = {
        "GITHUB_REPOSITORY": "example/sample",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_SHA": "a" * 40,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_SERVER_URL": f"file://{tmp_path}/nowhere",
        "GITHUB_API_URL": "http://127.0.0.1:9",
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }

    def call(name: str, **env: str | None) -> tuple[int, str, str]:
        for key, value in {**job, **env}.items():
            if value is None:
                monkeypatch.delenv(key, raising=False)
            else:
                monkeypatch.setenv(key, value)
        code = int(run(["github", name]))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def given(**inputs: str) -> dict[str, str]:
    return {f"{PREFIX}{key.upper()}": value for key, value in inputs.items()}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("variable", ["GITHUB_REPOSITORY", "GITHUB_EVENT_NAME", "GITHUB_SHA"])
def test_outside_of_a_job_each_step_says_so_in_a_line(step, name, variable):
    code, _, said = step(name, **{variable: None})
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"error: {variable} is not set")


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[" * 200_000], ids=["gone", "cut", "no text", "bottomless"])
def test_an_event_that_cannot_be_read_is_one_line(step, tmp_path, name, content):
    path = tmp_path / "event.json"
    path.unlink() if content is None else path.write_bytes(content)
    code, _, said = step(name)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("error: GITHUB_EVENT_PATH: ")


@pytest.mark.parametrize("name", ["report", "record"])
@pytest.mark.parametrize(
    ("path", "reason"),
    [("", "bundle-path: is not given"), ("gone", "no such folder"), (".", "holds no check.json")],
)
def test_a_step_without_a_bundle_says_what_is_missing(step, tmp_path, monkeypatch, name, path, reason):
    monkeypatch.chdir(tmp_path)
    code, out, said = step(name, **given(bundle_path=path))
    assert (code, said.count("\n")) == (2, 1)
    assert reason in said
    # The report of a check never makes a job red, so it is a warning there.
    assert out.startswith("::warning " if name == "report" else "::error ")


@pytest.mark.parametrize("key", ["../x", "a b", "x" * 65, ".."])
def test_a_key_that_is_no_name_ends_as_a_verdict(step, tmp_path, key):
    code, _, said = step("check", **given(key=key, logs="x.jsonl"))
    assert code == 2
    assert "is no name" in said
    assert "\nerror\n" in (tmp_path / "output").read_text()
    assert not (tmp_path / "temp").exists()


def test_no_step_writes_to_the_branch_of_the_code(step, tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "check.json").write_text(json.dumps({"verdict": "pass", "exit_code": 0}))
    code, _, said = step("record", **given(bundle_path=str(tmp_path / "bundle"), data_branch="main"))
    assert code == 2
    assert "main is the branch of the code" in said


def test_outputs_that_cannot_be_written_are_one_line(step, tmp_path):
    code, _, said = step("check", GITHUB_OUTPUT=str(Path(tmp_path, "gone", "output")), **given(logs="x.jsonl"))
    assert code == 2
    assert said.splitlines()[-1].endswith("cannot be written (No such file or directory)")

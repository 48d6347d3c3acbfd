"""The steps of the action with variables and events that are missing, damaged or wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainscope.cli.main import run
from trainscope.github.inputs import PREFIX
from trainscope.github.job import TOKEN

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


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(
    ("variable", "value"),
    [("GITHUB_SHA", "v1.0"), ("GITHUB_API_URL", "nonsense"), ("GITHUB_API_URL", "file:///etc"), (TOKEN, "two\nlines")],
)
def test_a_variable_that_no_runner_sets_so_is_one_line_without_its_secret(step, name, variable, value):
    code, out, said = step(name, **{variable: value})
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"error: {'github-token' if variable == TOKEN else variable}: ")
    assert "lines" not in (out + said).replace("line ends", "")


def test_a_check_that_cannot_even_start_has_a_verdict(step, tmp_path):
    assert step("check", GITHUB_SHA="v1.0")[0] == 2
    assert "verdict<<" in (tmp_path / "output").read_text()


def test_a_branch_that_is_no_name_is_said_even_where_nobody_asks_for_it(step, tmp_path):
    code, _, said = step("check", **given(logs="x.jsonl", baseline="auto", data_branch="x" * 300))
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("error: data-branch: 'xxx")
    assert "verdict<<" in (tmp_path / "output").read_text()


@pytest.mark.slow
def test_a_training_that_leaves_no_file_in_our_folder_is_a_verdict_with_its_reason(step, tmp_path):
    pipe = "cd $RUNNER_TEMP/trainscope/default && mkdir -p out && mkfifo out/report.md && exit 3"
    code, _, said = step("check", **given(run=pipe))
    assert code == 2
    assert "report.md` is a named pipe" in said
    assert "error" in (tmp_path / "output").read_text()


def test_a_folder_that_no_check_made_is_never_emptied(step, tmp_path):
    mine = tmp_path / "temp" / "trainscope" / "default" / "thesis.tex"
    mine.parent.mkdir(parents=True)
    mine.write_text("do not touch")
    code, _, said = step("check", **given(logs="x.jsonl"))
    assert code == 2
    assert "holds 'thesis.tex', which no check left" in said
    assert mine.read_text() == "do not touch"


def test_a_site_of_checks_that_judged_nothing_names_the_branch(step, tmp_path):
    server, left = tmp_path / "server" / "example" / "sample", tmp_path / "left"
    left.mkdir()
    (left / "check.json").write_text(json.dumps({"verdict": "error", "exit_code": 4, "head": "a" * 40}))
    subprocess.run(["git", "init", "-q", "--bare", str(server)], check=True)
    home = {"GITHUB_SERVER_URL": f"file://{tmp_path}/server"}
    assert step("record", **home, **given(bundle_path=str(left)))[0] == 0
    code, _, said = step("site", **home)
    assert (code, said) == (
        2, "error: trainscope-data: no recorded check has a run to show yet; record one that was judged\n"
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can close a process to its own user")
def test_the_token_cannot_be_read_from_the_check_by_what_it_runs():
    code = (
        "import ctypes; from trainscope.cli.main import run; run(['github', 'check']); "
        "print('open to others:', ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    for token, said in (("", "1"), ("secret", "0")):
        env = {**os.environ, TOKEN: token, "GITHUB_REPOSITORY": ""}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert done.stdout.splitlines()[-1] == f"open to others: {said}"


@pytest.mark.slow
def test_a_check_that_is_ended_leaves_no_training_behind(step, tmp_path, monkeypatch):
    step("check", GITHUB_SHA=None)  # sets the other variables
    monkeypatch.setenv("GITHUB_SHA", "a" * 40)
    started = tmp_path / "started"
    for key, value in given(run=f"echo $$ > '{started}.part'; mv '{started}.part' '{started}'; sleep 300").items():
        monkeypatch.setenv(key, value)
    with subprocess.Popen([sys.executable, "-m", "trainscope", "github", "check"], stdout=subprocess.PIPE) as check:
        try:
            for _ in range(600):
                if started.exists() or check.poll() is not None:
                    break
                time.sleep(0.1)
            training = int(started.read_text())
            check.send_signal(signal.SIGTERM)
            check.communicate(timeout=60)
        finally:
            check.kill()
    assert check.returncode == 130
    for _ in range(100):  # what was killed is gone once init has seen to it
        if not runs(training):
            break
        time.sleep(0.1)
    assert not runs(training)


def runs(process: int) -> bool:
    """Tell whether a process is there and not only waits to be told as ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

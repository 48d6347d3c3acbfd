"""The environment that the action runs in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.action.conftest import ROOT, installer

PIN = re.compile(r"^([\w.-]+)==(\S+) \\$", re.MULTILINE)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-site.txt"])
def test_the_action_installs_the_versions_that_the_project_is_tested_with(name):
    tested = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().lower().split() if "==" in line)
    pins = dict(PIN.findall((ROOT / "action" / name).read_text()))
    assert len(pins) > 15
    for package, version in pins.items():
        known = {key.replace("_", "-"): value for key, value in tested.items()}
        assert known[package.replace("_", "-")] == version
    for text in re.split(r"^(?=[\w.-]+==)", (ROOT / "action" / name).read_text(), flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in text


def test_every_package_that_the_project_needs_is_installed():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {n.lower() for n, _ in PIN.findall((ROOT / "action" / "requirements.txt").read_text())}
    site = {n.lower() for n, _ in PIN.findall((ROOT / "action" / "requirements-site.txt").read_text())}
    assert {re.split(r"[><=]", d)[0] for d in project["dependencies"]} <= names
    assert {re.split(r"[><=]", d)[0] for d in project["optional-dependencies"]["site"]} <= site


def test_an_old_python_is_told_so(monkeypatch):
    module = installer()
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    with pytest.raises(SystemExit, match=r"::error title=trainscope::Python .* is too old .* needs 3\.11"):
        module.main("locate")


def test_a_place_that_cannot_be_written_and_a_step_without_outputs_are_said(tmp_path, monkeypatch):
    module = installer()
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "out"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("RUNNER_TOOL_CACHE", str(tmp_path / "file"))
    with pytest.raises(SystemExit, match=r"^::error title=trainscope::.*file/trainscope: cannot be written \(Not a"):
        module.main("install")
    monkeypatch.delenv("GITHUB_OUTPUT")
    with pytest.raises(SystemExit, match="GITHUB_OUTPUT is not set"):
        module.main("locate")


@pytest.mark.slow
def test_a_fresh_environment_runs_the_checkout_and_is_found_again(tmp_path):
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env |= {"RUNNER_TOOL_CACHE": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out")}
    call = [sys.executable, "-I", str(ROOT / "action" / "install.py"), "install"]
    subprocess.run([*call[:-1], "locate"], env=env, check=True)
    half = Path(re.findall(r"^path=(.*)$", (tmp_path / "out").read_text(), re.MULTILINE)[-1]) / "bin"
    half.mkdir(parents=True)  # as a cache leaves it that was cut off
    first = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    if "No matching distribution" in first.stderr or "Connection" in first.stderr:
        pytest.skip("needs a package index")
    assert first.returncode == 0, first.stderr[-2000:]
    python = re.findall(r"^python=(.*)$", (tmp_path / "out").read_text(), re.MULTILINE)[-1]
    said = subprocess.run(
        [python, "-I", ROOT / "action" / "run.py", "analyze", ROOT / "examples/logs/nan.jsonl"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 1, said.stderr
    before = sorted(p.name for p in (tmp_path / "trainscope").iterdir())
    assert subprocess.run(call, env=env, check=False).returncode == 0
    assert sorted(p.name for p in (tmp_path / "trainscope").iterdir()) == before

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from trainscope.core.settings import load_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_settings_that_load_and_a_workflow_that_is_one(cli, here):
    assert cli("init").code == 0
    assert load_settings(here / "trainscope.toml").fail_on == "warning"
    workflow = yaml.safe_load((here / ".github/workflows/trainscope.yml").read_text())
    steps = {step.get("uses", "").partition("@")[0]: step for step in workflow["jobs"]["check"]["steps"]}
    known = yaml.safe_load((ROOT / "action.yml").read_text())
    assert set(steps["trainscope/action"]["with"]) <= set(known["inputs"])
    assert "steps.trainscope.outputs.bundle-path" in steps["actions/upload-artifact"]["with"]["path"]


def test_it_finds_the_script_the_requirements_the_branch_and_the_baseline(cli, here):
    (here / "src").mkdir()
    (here / "src/train.py").write_text("pass\n")
    (here / "requirements.txt").write_text("torch\n")
    (here / "trainscope_baseline.arrow").write_bytes(b"")
    (here / ".git").mkdir()
    (here / ".git/HEAD").write_text("ref: refs/heads/master\n")
    cli("init")
    settings = tomllib.loads((here / "trainscope.toml").read_text())
    assert settings["command"] == ["python", "src/train.py"]
    assert settings["baseline"] == ["trainscope_baseline.arrow"]
    workflow = (here / ".github/workflows/trainscope.yml").read_text()
    assert "branches: [master]" in workflow
    assert "pip install -r requirements.txt" in workflow


def test_it_never_overwrites(cli, here):
    (here / "trainscope.toml").write_text("steps = 7\n")
    result = cli("init")
    assert result.code == 0
    assert "kept trainscope.toml" in result.err
    assert (here / "trainscope.toml").read_text() == "steps = 7\n"

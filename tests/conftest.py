"""Options and fixtures for all tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine: what a change breaks must not depend on the draw of the day. Nor on the clock: on
# a busy machine any example may take long, and speed is measured by the benches.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# The models are tiny: threads of theirs would only wait for each other, and for those of the other test process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parents[1]
ALL_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite golden files instead of comparing")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are left out, what has no others is not imported: much of it would import torch."""
    if config.getoption("markexpr") != "not slow":
        return None
    files = [*collection_path.glob("test_*.py")] if collection_path.is_dir() else [collection_path]
    slow = [path.suffix == ".py" and bool(ALL_SLOW.search(path.read_text(encoding="utf-8"))) for path in files]
    return True if slow and all(slow) else None


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[str, ...]]]:
    """Turn ``python script.py ...`` into a command that does the same in a process that has torch already."""
    pytest.importorskip("torch")
    program, address = ROOT / "tests" / "warm.py", tmp_path_factory.mktemp("warm") / "s"
    with subprocess.Popen([sys.executable, str(program), "serve", str(address)], stdin=subprocess.PIPE) as server:
        while not address.exists():
            assert server.poll() is None, "the process that keeps torch did not start"
            time.sleep(0.05)
        # -S: this process only passes on what it is given.
        yield lambda _python, *command: (sys.executable, "-I", "-S", str(program), "run", str(address), *command)
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with a file under tests/golden, or rewrite that file if run with --accept."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path} is missing; write it with pytest --accept"
        expected = path.read_bytes().decode("utf-8")
        assert text == expected, f"differs from {name}; if meant, run pytest --accept and review the diff"

    return check

"""The rules that the code's shape must keep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trainscope"
MOST_LINES = 250
LONGER: Mapping[str, str] = {}
"""Files that may be longer, each with the reason."""
NUMERICAL = {"numpy", "pyarrow", "pandas", "torch", "altair", "rich", "pydantic", "jinja2"}
NEVER = {"torch", "altair", "matplotlib"}


def loaded_by(code: str) -> set[str]:
    """Names of the top-level packages in a fresh interpreter after it ran `code`."""
    code += "\nimport sys; print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_rooms_import_from_lower_floors_only():
    tool = Path(sys.executable).with_name("lint-imports")
    if not tool.exists():
        pytest.skip("needs import-linter")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_package_loads_no_numerical_library():
    assert not loaded_by("import trainscope") & NUMERICAL


@pytest.mark.parametrize("args", [["--help"], ["analyze", "--help"], ["completion", "bash"]], ids=" ".join)
def test_asking_for_help_loads_no_numerical_library(args):
    assert not loaded_by(f"from trainscope.cli.main import run; run({args!r})") & NUMERICAL


def test_no_output_loads_a_deep_learning_or_plotting_library():
    outputs = ("terminal", "json", "markdown", "html", "junit")
    asked = [["analyze", "examples/logs/nan.jsonl", "--output", output] for output in outputs]
    # Each is the verdict of a log with an error: an output that broke would give another code.
    code = f"from trainscope.cli.main import run; assert [run(args) for args in {asked!r}] == [1] * {len(asked)}"
    assert not loaded_by(code) & NEVER


def test_no_source_file_outgrows_what_one_can_survey():
    long = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }
    assert {name: lines for name, lines in long.items() if name not in LONGER} == {}
    assert set(LONGER) <= set(long), "a file that is short again needs no exception"


def test_every_module_says_what_it_is_for():
    silent = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if not path.read_text(encoding="utf-8").lstrip().startswith(('"""', 'r"""')) and path.name != "__main__.py"
    ]
    assert silent == []

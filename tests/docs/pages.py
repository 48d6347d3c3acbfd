"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "examples" / "README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The commands that a page tells the reader to type, without comments."""
    return typed("".join(blocks(page, "console")))


def typed(console: str) -> list[str]:
    """What is typed in a console, without comments."""
    lines = console.splitlines()
    return [shlex.join(shlex.split(line[2:], comments=True)) for line in lines if line.startswith("$ ")]


def carried_out(command: str, folder: Path, seconds: int = 120) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a reader would."""
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def section(page: str, heading: str) -> str:
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", text(page), re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no section {heading!r}"
    return found[2]


def anchors(page: Path) -> set[str]:
    """The anchors that a renderer gives the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}

"""The documentation is up to date, its links lead somewhere, and it names no place or host that it must not."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trainscope.core.settings import settings_from
from trainscope.detectors import configure
from trainscope.readers.cells import number
from trainscope.report.document import Document
from trainscope.report.schema import schema_text

from .pages import (
    ALL_PAGES,
    LINK,
    PAGES,
    README,
    ROOT,
    anchors,
    blocks,
    commands,
    section,
    text,
)


def tracked() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    names = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.slow
def test_the_generated_parts_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "scripts/build_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_stale_part_is_named_and_fails_the_check(tmp_path):
    for name in ("README.md", "examples", "src", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("docs", "scripts"):  # the script finds its pages beside itself
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "docs" / "cli.md"
    page.write_text(page.read_text(encoding="utf-8").replace("gate failed", "gate fell"), encoding="utf-8")
    before = page.read_bytes()
    done = subprocess.run(
        [sys.executable, "scripts/build_docs.py", "--check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "docs/cli.md is stale\n"), done.stderr
    assert page.read_bytes() == before


def test_the_published_schema_is_that_of_the_code():
    assert text("schemas/findings-1.schema.json") == schema_text()


def test_every_make_target_that_the_documentation_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    named = {word for page in ALL_PAGES for c in commands(page) if c.startswith("make ") for word in c.split()[1:]}
    assert named
    assert named <= targets


def test_every_script_that_the_documentation_runs_exists():
    named = {c.split()[1] for page in ALL_PAGES for c in commands(page) if c.startswith("python ")}
    assert named
    ours = [name for name in named if not name.startswith("../shared/")]
    assert [name for name in ours if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_settings_in_the_documentation_load(page):
    for block in blocks(page, "toml"):
        data = tomllib.loads(block)
        assert configure(settings_from(data.get("tool", {}).get("trainscope", data), page.name))


def test_the_document_in_the_documentation_is_valid():
    (block,) = blocks(ROOT / "docs" / "findings.md", "json")
    assert Document.model_validate_json(block).runs[0].findings


def test_the_spellings_of_non_finite_values_are_read():
    sentence = section("docs/readers.md", "Missing and non-finite values").partition(" are values")[0]
    spellings = re.findall(r"`([^`]+)`", sentence)
    assert len(spellings) >= 5
    assert [s for s in spellings if (value := number(s)) is None or math.isfinite(value)] == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_linked_from_the_readme():
    linked = set(LINK.findall(README.read_text(encoding="utf-8")))
    assert [p.name for p in PAGES[1:] if f"docs/{p.name}" not in linked] == []


def test_no_file_names_a_place_on_this_machine_or_a_host_of_a_package_index():
    # In pieces, so that this file does not name them either.
    words = ["/" + "work/", "/" + "tmp/", "/" + "home/", "/" + "root/", "/" + "Users/"]
    words += ["py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "ana" + "conda.org", "conda" + "-forge"]
    found = []
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content[:8192]:
            found += [(path.relative_to(ROOT).as_posix(), w) for w in words if w.encode() in content]
    assert found == []


def test_the_readme_never_says_to_install_by_name():
    says = [c for c in commands(README) if c.startswith("pip ")]
    assert says == ["pip install .", "pip install '.[tensorboard]'"]
    assert "**Never `pip install trainscope`:**" in README.read_text(encoding="utf-8")

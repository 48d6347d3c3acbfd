"""The documentation: complete, up to date, and true where it can be run."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.main import COMMANDS, cli
from trainscope.core.metrics import CANONICAL, Kind
from trainscope.core.settings import Settings, settings_from
from trainscope.detectors import DETECTORS, configure
from trainscope.readers import READERS
from trainscope.readers.cells import number
from trainscope.report.document import Document
from trainscope.report.renderers import OUTPUTS
from trainscope.report.schema import schema_text

ROOT = Path(__file__).parents[1]
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


def tracked() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    names = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}


# Complete


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    said = section("docs/cli.md", f"trainscope {name}")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [o for p in command.params if isinstance(p, click.Option) for o in p.opts]
    assert [o for o in options if not re.search(rf"(?<!\S){re.escape(o)}\b", said)] == []


def test_every_exit_code_is_documented():
    for page in ("README.md", "docs/cli.md"):
        assert [c for c in ExitCode if f"| `{c.value}` | {c.name.lower().replace('_', ' ')} |" not in text(page)] == []


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)
def test_every_detector_and_parameter_is_documented(detector):
    said = section("docs/detectors.md", detector.id)
    for heading in ("What it finds", "Algorithm", "Parameters", "False positives", "Misses", "Reference"):
        assert f"**{heading}**" in said
    rows = dict(re.findall(r"^\| `(\w+)` \| (`[^|]*`) \|", said, re.MULTILINE))
    assert list(rows) == list(detector.parameters())
    assert f"[`{detector.id}`]" in text("README.md")


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)
def test_every_parameter_says_what_it_means_and_why_its_default(detector):
    rows = re.findall(r"^\| `\w+` \| .+ \|$", section("docs/detectors.md", detector.id), re.MULTILINE)
    assert [row for row in rows if re.search(r"\|\s*\|", row)] == []


def test_every_reader_is_documented():
    for reader in READERS:
        assert f"[`{reader.NAME}`](docs/readers.md#{reader.NAME})" in text("README.md")
        said = section("docs/readers.md", reader.NAME)
        for field in ("Recognised by", "Keeps", "Drops", "Quirks", "Reference"):
            assert f"- **{field}**: " in said


def test_every_kind_of_note_is_documented():
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src/trainscope/readers").glob("*.py"))
    kinds = set(re.findall(r'\bNote\(\s*"(\w+)"', source))
    assert len(kinds) > 15
    assert kinds == set(re.findall(r"^\| `(\w+)` \|", section("docs/readers.md", "Kinds of notes"), re.MULTILINE))


def test_every_canonical_metric_and_kind_is_documented():
    assert [name for name in CANONICAL if f"| `{name}` |" not in text("docs/metrics.md")] == []
    assert [kind for kind in Kind if f"| `{kind.value}` |" not in text("docs/metrics.md")] == []


def test_every_settings_key_is_documented():
    assert [key for key in Settings.model_fields if f"| `{key}` |" not in text("docs/settings.md")] == []


SAMPLES = {"list of strings": [], "integer": 3, "number": 2.5, "tables": {}}


def test_the_type_of_every_setting_is_the_one_that_it_takes():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", text("docs/settings.md"), re.MULTILINE)
    said = {key: kind.strip() for key, kind, _ in rows if key in Settings.model_fields}
    assert said.keys() == Settings.model_fields.keys()
    for key, kind in said.items():
        words = [json.loads(word) for word in re.findall(r'"\w+"', kind)]
        for value in words or [SAMPLES[kind]]:
            assert getattr(settings_from({key: value}, "here"), key) == value
    assert (said["steps"], said["seed"], said["timeout"]) == ("integer", "integer", "number")
    assert [default.strip() for key, _, default in rows if key == "seed"] == ["unset"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_no_page_says_that_something_is_yet_to_come(page):
    assert re.findall(r"not there yet|none does yet", page.read_text(encoding="utf-8")) == []


def test_every_output_is_documented():
    said = section("README.md", "Outputs")
    assert [output for output in OUTPUTS if not re.search(rf"`(--output )?{output}`", said)] == []


def test_every_field_of_the_report_document_is_documented():
    said = set(re.findall(r"`(\w+)`", section_of_fields()))
    definitions = Document.model_json_schema()["$defs"]
    fields = {name for part in definitions.values() for name in part.get("properties", ())}
    assert sorted((fields | set(Document.model_fields)) - said) == []


def section_of_fields() -> str:
    page = text("docs/findings.md")
    return page[page.index("## Fields") : page.index("## Example")]


# Up to date


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


# True


def test_the_report_in_the_readme_is_what_a_terminal_shows():
    block = next(b for b in blocks(README, "console") if "examples/logs" in b)
    command, _, shown = block.removeprefix("$ ").partition("\n")
    main, follower = pty.openpty()
    with subprocess.Popen(
        [*shlex.split(command), "--no-color"],
        cwd=ROOT,
        env={**environment(), "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(follower)
        written = b""
        while True:
            try:
                chunk = os.read(main, 65536)
            except OSError:  # how a pseudo-terminal ends
                break
            if not chunk:
                break
            written += chunk
        os.close(main)
    assert process.returncode == 1
    assert written.decode().replace("\r\n", "\n").rstrip() == shown.rstrip()


TRAINING = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(400):
    batch = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
"""
OF_A_TRAINING = ("train.py", "trainscope_ci", "baseline.arrow")


def needs_training(command: str) -> bool:
    return any(word in command for word in OF_A_TRAINING)


def walk() -> list[str]:
    """Return the commands of README that lead from a spike to a proof, each of which needs those before it."""
    return typed(section("README.md", "From a spike to a proof"))


@pytest.mark.slow
def test_the_walk_from_a_spike_to_a_proof_comes_to_its_end(tmp_path):
    (tmp_path / "bench").symlink_to(ROOT / "bench")
    printed = []
    for command in walk():
        done = carried_out(command, tmp_path, 300)
        assert (command, done.returncode) == (command, 0), done.stderr
        printed.append(done.stdout + done.stderr)
    _, story, plan, proof = printed
    assert "Trouble at step 180: 3 batches of steps 180-182 look like garbage" in story
    assert "skip     3 batches: 180-182" in plan
    assert "replay: verified: 3 batches left out: the incident of step 180 is gone" in proof
    assert "the loss is the same, bit by bit, for the 180 steps before step 180" in proof


def gates() -> dict[tuple[str, ...], str]:
    """Return every order in which a page runs the gate on a training, and the first page that does."""
    found: dict[tuple[str, ...], str] = {}
    for page in PAGES:
        run = tuple(c for c in commands(page) if c.startswith("trainscope ") and needs_training(c))
        if run:
            found.setdefault(run, page.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", gates(), ids=gates().values())
def test_the_gate_of_the_documentation_runs_in_its_order(run, tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    # The CPU time of a test beside other tests says nothing.
    (tmp_path / "trainscope.toml").write_text("[detectors.cost_change]\nenabled = false\n")
    for command in run:
        done = carried_out(command, tmp_path)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    dict.fromkeys(
        c
        for page in PAGES
        for c in commands(page)
        if c.startswith("trainscope ") and " --help" not in c and not needs_training(c) and c not in walk()
    ),
)
def test_the_commands_of_the_documentation_run(command, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = carried_out(command, tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "error:" not in done.stderr


@pytest.mark.slow
def test_the_demo_runs_from_the_examples_alone(tmp_path):
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".installed").touch()
    done = subprocess.run(
        [make, "--assume-old=.venv/.installed", f"BIN={BIN}", "demo"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[spikes]" in done.stdout
    assert "<title>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_in_the_documentation_runs(page):
    for code in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if page.name == "README.md" and "print(" in code:
            assert done.stdout.startswith("error non_finite 397 ")


@pytest.mark.slow
def test_the_first_run_of_the_recorder_page_ends_as_the_page_shows(tmp_path):
    page = ROOT / "docs" / "recorder.md"
    code, shown = blocks(page, "python")[0], blocks(page, "text")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == shown.splitlines()[0]
    command = [sys.executable, "-m", "trainscope", "analyze", "out/runs/first"]
    env = {**os.environ, "COLUMNS": "120"}
    judged = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert judged.returncode == 1
    wanted = [line for line in shown.splitlines()[1:] if line != "..."]
    assert wanted
    assert [line for line in wanted if " ".join(line.split()) not in " ".join(judged.stdout.split())] == []


def test_the_recorder_page_names_everything_that_is_recorded():
    from trainscope.store.schema import HISTOGRAM_COLUMNS, LAYER_COLUMNS, SCALAR_COLUMNS

    page = text("docs/recorder.md")
    columns = (*SCALAR_COLUMNS, *LAYER_COLUMNS, *HISTOGRAM_COLUMNS)
    assert [name for name in columns if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_settings_in_the_documentation_load(page):
    for block in blocks(page, "toml"):
        data = tomllib.loads(block)
        assert configure(settings_from(data.get("tool", {}).get("trainscope", data), page.name))


def test_the_settings_page_has_an_example_of_each_place_for_settings():
    examples = [tomllib.loads(block) for block in blocks(ROOT / "docs" / "settings.md", "toml")]
    assert {"tool" in example for example in examples} == {True, False}


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


# Clean


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

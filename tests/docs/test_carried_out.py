"""What the documentation tells a reader to type or to run does what it says."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from .pages import (
    BIN,
    PAGES,
    README,
    ROOT,
    blocks,
    carried_out,
    commands,
    environment,
    section,
    typed,
)


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


def told() -> list[str]:
    """Return the other commands of trainscope; of those that differ only in where they write, one."""
    found: dict[str, str] = {}
    others = (c for page in PAGES for c in commands(page) if c not in walk() and not needs_training(c))
    for command in others:
        if command.startswith("trainscope ") and " --help" not in command:
            found.setdefault(re.sub(r"--out \S+", "--out", command), command)
    return [*found.values()]


@pytest.mark.slow
@pytest.mark.parametrize("command", told())
def test_the_commands_of_the_documentation_run(command, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = carried_out(command, tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "error:" not in done.stderr


def test_no_command_writes_where_a_checkout_has_files():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    own = {line.split("/")[0] for line in listed}
    written = {out for page in PAGES for command in commands(page) for out in re.findall(r"--out (\S+)", command)}
    assert len(written) > 3
    assert {out for out in written if out.split("/")[0] in own} == set()


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_in_the_documentation_runs(page):
    own = page.name == "recorder.md"  # the first is run by the test of what the page shows of it
    for code in blocks(page, "python")[own:]:
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

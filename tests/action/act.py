"""Runs workflows with act on this machine, without containers or network.

Every ``uses:`` of another repository is mapped to a stand-in of ours; one without a stand-in is an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STUBS = Path(__file__).parent / "stubs"
_USES = re.compile(r"^\s*(?:-\s*)?uses:\s*([\w.-]+)/([\w.-]+)((?:/[\w.-]+)*)@(\S+)", re.MULTILINE)
LABELS = ("ubuntu-latest",)


def find_act() -> str | None:
    """Return the program, beside the interpreter or on the path."""
    return shutil.which("act", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@dataclass
class Ran:
    """What a workflow did."""

    text: str
    jobs: dict[str, str] = field(default_factory=dict)
    """Name of each job to its result."""
    commands: list[dict] = field(default_factory=list)
    """Annotations, outputs and summaries, in order."""

    def of(self, command: str) -> list[dict]:
        return [c for c in self.commands if c["command"] == command]

    def outputs(self, step: str) -> dict[str, str]:
        """Return the outputs of a step; of a composite action those of its steps stand under their own ids."""
        found = [c for c in self.of("set-output") if step in (c.get("stepID") or [])]
        return {c["name"]: c.get("arg", "") for c in found}


def run_act(
    repository: Path, workflow: str, event_name: str, event: Mapping, env: Mapping[str, str], action: Path, home: Path
) -> Ran:
    """Run a workflow of a repository whose own action is in the folder `action`."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "event.json").write_text(json.dumps(event))
    command = [find_act() or "act", event_name, "-C", str(repository), "-W", workflow, "--json", "--pull=false"]
    command += ["--action-cache-path", str(home / "actions"), "--no-cache-server", "-e", str(home / "event.json")]
    command += [part for label in LABELS for part in ("-P", f"{label}=-self-hosted")]
    command += [part for key, value in env.items() for part in ("--env", f"{key}={value}")]
    command += ["-s", "GITHUB_TOKEN=fake-token-123", *_mappings(repository, action)]
    # act hands its environment on to the jobs: start it from a small one.
    small = {
        # The training's Python is the one that runs the tests: it has torch.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, env=small, capture_output=True, text=True, check=False, timeout=300)
    ran = Ran(done.stdout + done.stderr)
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if row.get("jobResult"):
            ran.jobs[row["jobID"]] = row["jobResult"]
        if row.get("command"):
            ran.commands.append(row)
    return ran


def _mappings(repository: Path, action: Path) -> list[str]:
    found: dict[str, Path] = {}
    for file in [*repository.glob(".github/workflows/*.yml"), action / "action.yml"]:
        for owner, name, _, ref in _USES.findall(file.read_text()):
            if (owner, name) == ("actions", "checkout"):
                continue  # act copies the work tree itself
            place = action if owner == "trainscope" else STUBS / name
            assert (place / "action.yml").is_file(), f"no stand-in for {owner}/{name}"
            found[f"{owner}/{name}@{ref}"] = place
    return [part for ref, place in found.items() for part in ("--local-repository", f"{ref}={place}")]

"""``trainscope init``: a settings file and a workflow for the repository it stands in."""

from __future__ import annotations

from pathlib import Path

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import say
from trainscope.core.errors import ConfigError

SETTINGS, WORKFLOW = Path("trainscope.toml"), Path(".github/workflows/trainscope.yml")
BASELINE = "trainscope_baseline.arrow"
SCRIPTS = ("train.py", "src/train.py", "scripts/train.py", "main.py", "run.py", "finetune.py", "pretrain.py")
"""Where training scripts usually are, most likely first."""
_EVERY_SETTING = """\
# Settings of trainscope for this repository. Every key is optional; `trainscope explain ID` lists what a
# detector or comparison can be told.

# What `trainscope ci` runs, unchanged, with the recorder injected. Small and seeded is best: a few hundred steps
# of a model that fits the runner show most bugs.
{command}

# Optimizer steps to record, and seconds after which the command has failed.
steps = 200
timeout = 1800

# What to compare with. Make it on the main branch, and again whenever a change is meant:
#   trainscope ci --fail-on never
#   trainscope baseline save trainscope_ci --out {baseline}
{compare}

# The least severity that fails the gate: never, info, warning or error.
fail_on = "warning"

# What must hold whatever the baseline says.
# expect = ["train/loss last < 3.5", "eval/loss min < 3.2"]

# [detectors.paired_loss]
# relative = 0.005   # how much worse than the baseline's a loss may be, of the baseline's
# [detectors.cost_change]
# severity = "info"  # say that a step costs more, and do not fail
"""
_WORKFLOW = """\
# Trains for some steps and judges them: trainscope.toml says how. docs/ci.md of trainscope has inputs and permissions.
name: trainscope
on:
  pull_request:
  push:
    branches: [{branch}]
permissions: {{}}
jobs:
  check:
    name: Training health
    runs-on: ubuntu-latest
    timeout-minutes: 45
    permissions:
      contents: read # to check out
      pull-requests: write # to keep one comment up to date
    steps:
      - uses: actions/checkout@v4
        with:
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
{install}
      - id: trainscope
        uses: trainscope/action@v1
        with:
          comment: auto
      - if: always() && steps.trainscope.outputs.bundle-path != ''
        uses: actions/upload-artifact@v4
        with:
          name: trainscope
          path: ${{{{ steps.trainscope.outputs.bundle-path }}}}
"""


@click.command(short_help="Write a settings file and a workflow for this repository.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    metavar="DIR",
    help="The repository; default: the working folder.",
)
def init(folder: Path) -> ExitCode:
    """Write a settings file and a workflow for this repository.

    Looks for the training script, the requirements and a saved baseline. Files that are there already stay as
    they are.
    """
    for path, text in ((SETTINGS, settings_text(folder)), (WORKFLOW, workflow_text(folder))):
        target = folder / path
        if target.exists():
            say(f"kept {target}: it is there already")
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise ConfigError(f"{target}: cannot be written ({error.strerror})") from None
        say(f"wrote {target}")
    return ExitCode.PASS


def settings_text(folder: Path) -> str:
    """Return the settings file for a repository."""
    script = next((s for s in SCRIPTS if (folder / s).is_file()), None)
    command = f'command = ["python", "{script}"]' if script else '# command = ["python", "train.py"]'
    saved = (folder / BASELINE).is_file()
    compare = f'{"" if saved else "# "}baseline = ["{BASELINE}"]'
    return _EVERY_SETTING.format(command=command, baseline=BASELINE, compare=compare)


def workflow_text(folder: Path) -> str:
    """Return the workflow for a repository: installs what it finds requirements for."""
    if (folder / "requirements.txt").is_file():
        install = "      - run: python -m pip install -r requirements.txt"
    elif (folder / "pyproject.toml").is_file():
        install = "      - run: python -m pip install ."
    else:
        install = "      - run: python -m pip install torch"
    return _WORKFLOW.format(branch=_branch(folder), install=install)


def _branch(folder: Path) -> str:
    """Return the name of the default branch as far as the checkout tells."""
    git = folder / ".git"
    for file in (git / "refs/remotes/origin/HEAD", git / "HEAD"):
        try:
            found = file.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        name = found.removeprefix("ref: ").rpartition("/")[2]
        if found.startswith("ref: ") and name in ("main", "master", "trunk", "develop"):
            return name
    return "main"

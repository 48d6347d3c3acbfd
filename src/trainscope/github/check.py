"""The step that judges: runs ``trainscope ci`` beside itself, and keeps what it left and how it ended.

It runs in a process of its own, so that even one that is killed for its memory ends as a verdict, and with an
environment that holds no token and none of the runner's files, because it starts the code of the pull request.
"""

from __future__ import annotations

import collections
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainscope.core.errors import ConfigError, writing_in
from trainscope.github.artifact import DOCUMENT, read_folder
from trainscope.github.baseline import Found
from trainscope.github.inputs import FAIL_ON, PREFIX, Inputs
from trainscope.github.job import TOKEN, Job
from trainscope.github.result import FILE, MAX_LINE, MAX_OUTPUT_LINES, CheckResult, VerdictName
from trainscope.github.workflow_commands import fences
from trainscope.report.text import printable, shorten
from trainscope.site.bundle import NAME, RECORDS

PASS, FAIL, NO_DATA = 0, 1, 3
"""Exit codes of ``trainscope ci`` that mean more than "error" here."""
KEPT = (DOCUMENT, "report.md", "report.html", "replay_config*.json", "bundle/*.arrow", f"{RECORDS}/*/{NAME}")
"""What a bundle holds of the folder that ``trainscope ci`` wrote; the recorded run itself may be huge."""
_SECRETS = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
_RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
_OWN = ("__PYVENV_LAUNCHER__",)
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from trainscope.__main__ import main; main()"

Write = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check left."""

    result: CheckResult
    bundle: Path
    """Folder to upload: ``check.json`` and, where something was judged, the document and its readable forms."""


def arguments(inputs: Inputs, baseline: Path | None, out: Path) -> list[str]:
    """Return the arguments of ``trainscope`` for some inputs; what is not given is left to the settings file.

    Raises
    ------
    ConfigError
        If an input is wrong.
    """
    found = ["ci", "--out", str(out), "--no-color"]
    command, logs = inputs.text("run"), inputs.lines("logs")
    if command and logs:
        raise ConfigError("run and logs: give one of them; a run is judged by what it records")
    if inputs.text("steps"):
        found += ["--steps", str(inputs.number("steps", 1, 10**9, 200))]
    if inputs.text("seed"):
        found += ["--seed", str(inputs.number("seed", 0, 2**31, 0))]
    if inputs.text("run-timeout"):
        found += ["--timeout", str(inputs.number("run-timeout", 1, 10**6, 3600))]
    if inputs.text("fail-on"):
        found += ["--fail-on", inputs.choice("fail-on", FAIL_ON, "")]
    if inputs.text("gate"):
        found += ["--gate", inputs.choice("gate", ("all", "new"), "")]
    if inputs.text("config"):
        found += ["--config", inputs.text("config")]
    if baseline is not None:
        found += ["--baseline", str(baseline)]
    found += [part for log in logs for part in ("--logs", log)]
    return [*found, *(["--", *_shell(command)] if command else [])]


def _shell(command: str) -> list[str]:
    """Return how to run a text as a workflow's own ``run`` does."""
    shell = shutil.which("bash")
    if shell is None:
        raise ConfigError("run: needs bash, which this runner lacks")
    return [shell, "--noprofile", "--norc", "-eo", "pipefail", "-c", command]


def run_check(inputs: Inputs, job: Job, found: Found, folder: Path, write: Write) -> Checked:
    """Run ``trainscope ci`` and keep what it left.

    Parameters
    ----------
    found : Found
        The baseline, or why there is none.
    folder : Path
        A new folder for all that is written.
    write : callable
        Gets what the command prints, between two lines that keep the runner from obeying any of it.

    Raises
    ------
    ConfigError
        If an input is wrong.
    StoreError
        If something cannot be written.
    """
    out, bundle = folder / "out", folder / "bundle"
    place = job.workspace / inputs.text("working-directory", ".")
    if not place.is_dir():
        raise ConfigError(f"working-directory: {inputs.text('working-directory')[:80]!r} is no folder of the checkout")
    given = arguments(inputs, found.folder, out)
    code, lines = _run(given, place, write)
    _keep(out, bundle)
    verdict, reason = _verdict(code, lines, (bundle / DOCUMENT).is_file(), inputs.flag("require-data", default=True))
    result = CheckResult(
        key=inputs.key,
        verdict=verdict,
        exit_code=code if 0 <= code <= 255 else 255,
        reason=reason,
        output=_output(lines) if verdict == "error" else [],
        head=job.head or None,
        data_branch=inputs.data_branch if found.source is not None or found.note else "",
        baseline=found.source,
        baseline_note=shorten(printable(found.note), 1000),
    )
    with writing_in(bundle):
        (bundle / FILE).write_text(result.to_json(), encoding="ascii", newline="\n")
    return Checked(result, bundle)


def outputs_of(checked: Checked) -> dict[str, str]:
    """Return the outputs of the step."""
    bundle = read_folder(checked.bundle)
    document = bundle.document
    counts = {} if document is None else document.counts.model_dump()
    new = ""
    if document is not None and document.baseline is not None:
        new = str(sum(f.status == "new" for run in document.runs for f in run.findings))
    return {
        "verdict": checked.result.verdict,
        "exit-code": str(checked.result.exit_code),
        "errors": str(counts.get("error", "")),
        "warnings": str(counts.get("warning", "")),
        "new-findings": new,
        "baseline-sha": checked.result.baseline.sha if checked.result.baseline is not None else "",
        "findings-path": str(checked.bundle / DOCUMENT) if document is not None else "",
        "bundle-path": str(checked.bundle),
    }


def _run(given: Sequence[str], place: Path, write: Write) -> tuple[int, list[str]]:
    source = str(Path(__file__).parents[2])
    tail: collections.deque[str] = collections.deque(maxlen=200)
    begin, end = fences()
    write(f"{begin}\n".encode())
    try:
        with subprocess.Popen(
            [sys.executable, "-I", "-c", _START, source, *given],
            cwd=place,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # One stream, or the runner could read the second one after the fence has come down.
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    write(line)
                    tail.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                code = process.wait()
            finally:
                # A cancelled job ends us; `trainscope ci` then ends the training and all its processes.
                if process.poll() is None:
                    process.terminate()
    finally:
        write(f"\n{end}\n".encode())
    return code, list(tail)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    dropped, token = {TOKEN, *_SECRETS, *_RUNNER_FILES, *_OWN}, given.get(TOKEN, "")
    return {
        key: value
        for key, value in given.items()
        # Whatever it is called: some runners hand the inputs of an action on as variables too.
        if key not in dropped and not key.startswith((PREFIX, "INPUT_")) and not (token and token in value)
    }


def _keep(out: Path, bundle: Path) -> None:
    with writing_in(bundle):
        bundle.mkdir(parents=True)
        for pattern in KEPT:
            for file in sorted(out.glob(pattern)):
                target = bundle / file.relative_to(out)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


def _verdict(code: int, lines: Sequence[str], has_document: bool, require_data: bool) -> tuple[VerdictName, str]:
    said = next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), "")
    reason = shorten(printable(said), 1000)
    if code in (PASS, FAIL) and has_document:
        return ("pass" if code == PASS else "fail"), ""
    if code == NO_DATA and not require_data:
        return "pass", f"no data, and require-data is false ({reason})"[:1000]
    if code < 0:
        return "error", f"trainscope ci was ended by signal {-code}"
    return "error", reason or f"trainscope ci ended with exit code {code}"


def _output(lines: Sequence[str]) -> list[str]:
    shown = [line.removeprefix("  | ") for line in lines if line.startswith("  | ")]
    return [shorten(printable(line), MAX_LINE) for line in shown[-MAX_OUTPUT_LINES:]]

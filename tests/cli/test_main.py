from __future__ import annotations

import contextlib
import os
import pty
import resource
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from trainscope import __main__ as entry
from trainscope import __version__
from trainscope.cli.exit_codes import ExitCode, of_verdict
from trainscope.cli.main import COMMANDS, LazyGroup
from trainscope.cli.main import cli as group

HEAVY = {"numpy", "pyarrow", "pydantic", "rich", "jinja2", "torch", "pandas", "altair"}
TRAINSCOPE = [sys.executable, "-m", "trainscope"]


def test_the_exit_codes_are_those_of_the_contract():
    assert {c.name: c.value for c in ExitCode} == {
        "PASS": 0, "GATE_FAILED": 1, "CANNOT_JUDGE": 2, "NO_DATA": 3, "COMMAND_FAILED": 4, "INTERRUPTED": 130,
    }  # fmt: skip
    assert [of_verdict(s) for s in ("pass", "fail", "error")] == [0, 1, 2]


def test_the_version_is_told(cli):
    assert cli("--version").out == f"trainscope {__version__}\n"


def test_help_lists_every_command_with_its_own_first_line(cli):
    out = cli("--help").out
    assert isinstance(group, LazyGroup)
    for name, line in COMMANDS.items():
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.name == name
        assert command.short_help == line
        assert f"{name} " in out
        assert line in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(cli, command):
    result = cli(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: trainscope {command}")


def test_without_a_command_the_help_is_shown_and_the_usage_is_wrong(cli):
    result = cli()
    assert result.code == 2
    assert "Commands:" in result.out + result.err


@pytest.mark.parametrize("args", [["no-such-command"], ["analyze", "--no-such-option", "x"]])
def test_wrong_usage_is_exit_code_two(cli, args):
    result = cli(*args)
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(option):
    code = f"import sys; sys.argv[1:] = [{option!r}]\nfrom trainscope.cli.main import run\nrun()\n"
    code += "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & HEAVY


@pytest.mark.slow
def test_help_takes_at_most_three_times_as_long_as_importing_click():
    def cost(*command: str) -> float:
        best = float("inf")
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return best

    assert cost("-m", "trainscope", "--help") <= 3 * cost("-c", "import click")


@pytest.mark.slow
@pytest.mark.parametrize(("log", "code"), [("healthy.csv", 0), ("nan.csv", 1)])
def test_a_reader_that_goes_away_is_no_error_and_the_gate_still_counts(logs: Path, log, code):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*TRAINSCOPE, "analyze", log], cwd=logs, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.slow
def test_an_interrupted_analysis_is_exit_code_130(tmp_path: Path):
    pipe = tmp_path / "log.jsonl"
    os.mkfifo(pipe)
    command = [*TRAINSCOPE, "analyze", str(pipe)]
    # Opening waits until the command reads: by then the interrupt reaches it, not the interpreter's start.
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path) as process, pipe.open("w"):
        for _ in range(10):
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, err = process.communicate(timeout=10)
                break
            # Python drops an interrupt that comes while it clears up: whoever waits presses the keys again.
    assert process.returncode == 130
    assert b"Traceback" not in err


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["trainscope.cli.main", "click", "trainscope.core.errors", "numpy", "pydantic"])
def test_ctrl_c_has_its_exit_code_while_a_library_loads(logs: Path, module: str):
    code = (
        "import runpy, sys\n"
        "class Interrupted:\n"
        "    @staticmethod\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted)\n"
        "sys.argv = ['trainscope', 'analyze', 'healthy.csv']\n"
        "runpy.run_module('trainscope', run_name='__main__')\n"
    )
    done = python(code, logs)
    assert (done.returncode, done.stdout) == (ExitCode.INTERRUPTED, "")
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_while_an_error_is_told_is_no_bug(logs: Path):
    code = (
        "import sys\n"
        "from trainscope.cli import main\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        "main.tell = interrupted\n"
        "sys.argv = ['trainscope', 'analyze', 'nowhere.csv']\n"
        "main.main()\n"
    )
    done = python(code, logs)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "")


def test_the_installed_command_is_the_one_that_knows_ctrl_c_from_its_first_line():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"]["trainscope"] == "trainscope.__main__:main"
    assert entry.INTERRUPTED == ExitCode.INTERRUPTED


@pytest.mark.slow
def test_a_bug_does_not_read_as_a_failed_gate(logs: Path):
    code = (
        "import sys, trainscope.readers as readers\n"
        "readers.find_logs = lambda *_, **__: 1 / 0\n"
        "sys.argv = ['trainscope', 'analyze', 'healthy.csv']\n"
        "from trainscope.cli.main import main\n"
        "main()\n"
    )
    done = python(code, logs)
    assert done.returncode == 2
    assert "ZeroDivisionError" in done.stderr
    assert "bug in trainscope" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "environment", "colored"),
    [
        ([], {}, True),
        (["--no-color"], {}, False),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
    ],
)
def test_colours_are_for_terminals_and_can_be_turned_off(logs: Path, options, environment, colored):
    main, follower = pty.openpty()
    env = {"TERM": "xterm", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]} | environment
    process = subprocess.Popen(
        [*TRAINSCOPE, "analyze", "nan.csv", *options], cwd=logs, stdout=follower, stderr=follower, env=env
    )
    os.close(follower)
    text = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    os.close(main)
    assert process.wait(timeout=20) == 1
    assert (b"\x1b[" in text) is colored


@pytest.mark.slow
def test_an_ascii_only_standard_output_is_no_reason_to_fail(logs: Path):
    (logs / "日本.csv").write_text((logs / "healthy.csv").read_text())
    done = subprocess.run(
        [*TRAINSCOPE, "analyze", "日本.csv", "--output", "markdown"],
        cwd=logs,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_complete(cli, shell):
    script = cli("completion", shell).out
    assert "_TRAINSCOPE_COMPLETE" in script
    done = subprocess.run(
        TRAINSCOPE,
        env={
            **os.environ,
            "_TRAINSCOPE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": "trainscope an",
            "COMP_CWORD": "an" if shell == "fish" else "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "analyze" in done.stdout

"""Prepares the environment that the action runs in: the packages of one requirements file, by hash, and nothing else.

    python -I install.py locate             where it belongs, for a cache
    python -I install.py install            makes it, unless it is there

trainscope itself is never installed: ``run.py`` runs the checkout that the action is, at its commit. The interpreter
and packages of the job stay as they are. Standard library only, and readable by an old Python, so that one can be told
that it is too old.
"""

import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile

OLDEST = (3, 11)
HERE = pathlib.Path(__file__).resolve().parent


def requirements():
    """Return the requirements file that the step asks for."""
    name = "requirements-site.txt" if os.environ.get("TRAINSCOPE_EXTRA") == "site" else "requirements.txt"
    return HERE / name


def place():
    """Return the folder of the environment; its name says all that it depends on."""
    about = "\0".join(
        [platform.python_version(), platform.python_implementation(), sysconfig.get_platform(), sys.executable]
    )
    digest = hashlib.sha256(about.encode() + requirements().read_bytes()).hexdigest()[:16]
    root = os.environ.get("RUNNER_TOOL_CACHE") or os.environ.get("RUNNER_TEMP") or tempfile.gettempdir()
    return pathlib.Path(root) / "trainscope" / f"{requirements().stem}-{digest}"


def interpreter(folder):
    """Return the interpreter of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(folder):
    """Make the environment, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    pip = ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    wanted = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(requirements())]
    try:
        run([sys.executable, "-I", "-m", "venv", str(part)], "python -m venv failed; on Debian install python3-venv")
        run([str(interpreter(part)), "-I", *pip, *wanted], "pip could not install the packages of the action")
        (part / "complete").touch()
        # A cache that was cut off while it was unpacked leaves half a folder, which no rename replaces.
        if folder.exists() and not (folder / "complete").is_file():
            shutil.rmtree(folder, ignore_errors=True)
        try:
            part.rename(folder)
        except OSError:
            if not (folder / "complete").is_file():  # another job was faster
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def run(command, why):
    """Run a command, or end with a line that says why it matters."""
    if subprocess.call(command):
        sys.exit(f"::error title=trainscope::{why}")


def main(verb):
    """Do what the step asks for, and tell it where."""
    if sys.version_info < OLDEST:
        wanted, found = ".".join(map(str, OLDEST)), platform.python_version()
        sys.exit(
            f"::error title=trainscope::Python {found} is too old for the action; it needs {wanted} or newer. "
            "Name one with the input python, such as the python-path of actions/setup-python"
        )
    folder, outputs = place(), os.environ.get("GITHUB_OUTPUT")
    if not outputs:
        sys.exit("::error title=trainscope::GITHUB_OUTPUT is not set: this runs in a step of a GitHub workflow only")
    try:
        if verb == "install" and not (folder / "complete").is_file():
            install(folder)
        with open(outputs, "a", encoding="utf-8", newline="\n") as file:
            file.write(f"path={folder}\nkey=trainscope-{folder.name}\npython={interpreter(folder)}\n")
    except OSError as error:
        sys.exit(
            f"::error title=trainscope::{error.filename or folder}: cannot be written ({error.strerror}). The packages "
            "of the action go into RUNNER_TOOL_CACHE, else RUNNER_TEMP"
        )


if __name__ == "__main__":
    main(sys.argv[1])

"""Runs Python scripts in copies of one process that has imported torch already: seconds less for each.

``python warm.py serve SOCKET`` is that process; ``python warm.py run SOCKET SCRIPT ARGUMENTS`` runs a script in a fork
of it, with the folder, environment and streams of the caller, and ends as it does. Where ``trainscope smoke``
is the caller, the recorder is started at once, because ``import torch`` is over; that the recorder finds its way into
a process of its own is what the tests of the injection are for.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

PRELOADED = ("torch", "torch._dynamo", "numpy")
"""``torch._dynamo`` is imported by the first optimizer."""


def run(address: str, command: list[str]) -> int:
    """Run a script in a fork of the server; return its exit code, or end by the signal that ended it."""
    job = {"command": command, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"0"], [0, 1, 2])
        connection.sendall(json.dumps(job).encode())
        connection.shutdown(socket.SHUT_WR)
        code = int(connection.recv(16))
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def serve(address: str) -> None:
    """Fork for each job until standard input ends, which it does with whoever started this process."""
    for name in PRELOADED:
        __import__(name)
    # Children are reaped by the system.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen()
        Path(f"{address}.new").rename(address)  # whoever sees it can connect
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _keep(connection)
            connection.close()


def _keep(connection: socket.socket) -> None:
    """Fork once more, and tell the caller how the script ended."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    text = b""
    while part := connection.recv(65_536):
        text += part
    script = os.fork()
    if script == 0:
        connection.close()
        _become(json.loads(text), streams)
    _, status = os.waitpid(script, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(job: dict[str, object], streams: list[int]) -> None:
    """Turn this process into the script."""
    import runpy

    for to, stream in enumerate(streams):
        os.dup2(stream, to)
        os.close(stream)
    os.environ.clear()
    os.environ.update(job["environment"])  # type: ignore[call-overload]
    os.chdir(str(job["folder"]))
    sys.argv = list(job["command"])  # type: ignore[call-overload]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    if "TRAINSCOPE_SMOKE" in os.environ:
        _start_recorder()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit:
        raise
    except BaseException:  # noqa: BLE001  # as the interpreter does at the end of a script
        sys.excepthook(*sys.exc_info())
        raise SystemExit(1) from None
    raise SystemExit(0)


def _start_recorder() -> None:
    """Do what the hook does when the body of torch has run."""
    import importlib.util

    path = f"{os.environ['TRAINSCOPE_SMOKE_PACKAGE']}/smoke/hook/sitecustomize.py"
    spec = importlib.util.spec_from_file_location("_hook", path)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    sys.meta_path.remove(hook._Torch)
    hook._start()


if __name__ == "__main__":
    verb, place, *rest = sys.argv[1:]
    if verb == "serve":
        serve(place)
    else:
        sys.exit(run(place, rest))

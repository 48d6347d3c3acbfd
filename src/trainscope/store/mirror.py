"""Keeps a copy of a run in a remote store, in a thread of its own: a remote store may be slow, or hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainscope.core.errors import RemoteError
from trainscope.store import layout, remote

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PATIENCE_SECONDS = 30.0
"""Closing waits for the copy as long as bytes arrive, and this long after the last one did."""

Report = Callable[[RemoteError], None]


class Mirror:
    """Brings a remote copy up to date when asked: whole files, only those that changed.

    Requests that come while it copies are one request: what waits is bounded. A copy that another run has
    left there under the same name is not overwritten: this one gets ``-2``.

    Parameters
    ----------
    uri : str
        Root below which the run's folder is copied.
    run : Path
    resumed : bool
        Whether the copy of that name is this run's own.
    report : callable, optional
        Gets the first failure, from the thread.

    Raises
    ------
    ConfigError
        If fsspec or the package for the scheme is missing, or the scheme is unknown.
    """

    def __init__(self, uri: str, run: Path, *, resumed: bool, report: Report | None = None) -> None:
        remote.check(uri)
        self._uri, self._run, self._resumed = uri, run, resumed
        self._report = report
        self._files: AbstractFileSystem | None = None
        self._root = ""
        self._seen: dict[str, tuple[int, int]] = {}
        self._failure: RemoteError | None = None
        self._reported = False
        self._wanted = threading.Event()
        self._closing = False
        self._alive_at = time.monotonic()
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Ask for a copy of what has changed, and return at once."""
        self._wanted.set()
        if self._thread is None:
            self._alive_at = time.monotonic()
            # A daemon: one that hangs must not keep the process from ending.
            self._thread = threading.Thread(target=self._work, name="trainscope-mirror", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Copy what is left, and wait for it while it gets on.

        Raises
        ------
        RemoteError
            If the copy is not complete: the store refuses, or has been silent for ``PATIENCE_SECONDS``.
        """
        self._closing = True
        self.request()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.05)
            if self._thread.is_alive() and time.monotonic() - self._alive_at > PATIENCE_SECONDS:
                raise RemoteError(
                    f"{self._uri}: no answer for {PATIENCE_SECONDS:g} s, the copy there is not complete; "
                    f"copy {self._run} by hand"
                )
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            last = self._closing
            self._alive_at = time.monotonic()
            try:
                with remote.answering(self._uri):
                    self._sync()
                self._failure = None
            except RemoteError as error:
                self._failure = error
                if self._report is not None and not self._reported:
                    self._reported = True
                    self._report(error)
            if last:
                return

    def _sync(self) -> None:
        """Copy what changed since the last call, delete what is gone."""
        if self._files is None:
            self._files = self._open()
        now = self._now()
        for name, state in now.items():
            if self._seen.get(name) != state and self._copy(name):
                self._seen[name] = state
        for name in self._seen.keys() - now.keys():
            self._files.rm_file(f"{self._root}/{name}")
            del self._seen[name]
            self._alive_at = time.monotonic()

    def _open(self) -> AbstractFileSystem:
        files, root = remote.connect(self._uri)
        home = self._root = f"{root.rstrip('/')}/{self._run.name}"
        number = 1
        while not self._resumed and files.exists(self._root):
            number += 1
            self._root = f"{home}-{number}"
        return files

    def _now(self) -> dict[str, tuple[int, int]]:
        """Return size and time of every file. Sorted: the journal comes before the files it is folded into."""
        found: dict[str, tuple[int, int]] = {}
        for path in sorted(self._run.rglob("*")):
            if path.name == layout.LOCK or any(part.endswith(".part") for part in path.parts):
                continue
            try:
                if path.is_file():
                    stat = path.stat()
                    found[path.relative_to(self._run).as_posix()] = (stat.st_size, stat.st_mtime_ns)
            except FileNotFoundError:  # the training goes on meanwhile
                continue
        return found

    def _copy(self, name: str) -> bool:
        """Copy one file; tell whether it was still there."""
        assert self._files is not None
        source, target = self._run / name, f"{self._root}/{name}"
        try:
            self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            self._files.put_file(str(source), target, callback=self._callback())
        except FileNotFoundError:
            if source.exists():
                raise
            return False  # folded or replaced meanwhile
        self._alive_at = time.monotonic()
        return True

    def _callback(self) -> Any:  # noqa: ANN401 - fsspec has no types
        from fsspec.callbacks import Callback

        mirror = self

        class Alive(Callback):  # type: ignore[misc]
            def call(self, *_args: object, **_kwargs: object) -> None:
                mirror._alive_at = time.monotonic()

        return Alive()

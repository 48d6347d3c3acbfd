"""Copies a run to a remote store while it is written, and back to read it, through fsspec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainscope.core.errors import ConfigError, ReadError, StoreError
from trainscope.store import layout

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def is_uri(path: str) -> bool:
    """Tell whether `path` is a URI with a scheme (``s3://``...) rather than a local path."""
    scheme = urlsplit(path).scheme
    return "://" in path and len(scheme) > 1


def mirror(uri: str | None, run: Path, *, resumed: bool) -> Mirror | None:
    """Return what copies `run` below the root `uri`, None without one.

    A copy that another run has left there under the same name is not overwritten: this one gets ``-2``.

    Raises
    ------
    StoreError
        If the remote store does not answer.
    ConfigError
        If fsspec or the package for the scheme is missing, or the scheme is unknown.
    """
    if uri is None:
        return None
    try:
        files, root = _open(uri)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"storage_uri = {uri!r}: {error}") from None
    home = free = f"{root.rstrip('/')}/{run.name}"
    number = 1
    with _answering(uri):
        while not resumed and files.exists(free):
            number += 1
            free = f"{home}-{number}"
    return Mirror(files, free, run, uri)


@contextmanager
def _answering(uri: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # every fsspec backend raises its own kinds
        raise StoreError(f"{uri}: cannot be written ({_first_line(error)})") from error


class Mirror:
    """Brings a remote copy up to date: whole files, only those that changed."""

    def __init__(self, files: AbstractFileSystem, root: str, run: Path, uri: str) -> None:
        self._files, self._root, self._run, self._uri = files, root, run, uri
        self._seen: dict[str, tuple[int, int]] = {}

    def sync(self) -> None:
        """Copy what changed since the last call, delete what is gone.

        Raises
        ------
        StoreError
            If the remote store refuses or does not answer. The local run is whole, and the next call
            tries again.
        """
        now: dict[str, tuple[int, int]] = {}
        for path in sorted(self._run.rglob("*")):
            if path.is_file() and path.name != layout.LOCK and path.suffix != ".part":
                stat = path.stat()
                now[path.relative_to(self._run).as_posix()] = (stat.st_size, stat.st_mtime_ns)
        with _answering(self._uri):
            for name, state in now.items():
                if self._seen.get(name) != state:
                    target = f"{self._root}/{name}"
                    self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
                    self._files.put_file(str(self._run / name), target)
                    self._seen[name] = state
            for name in self._seen.keys() - now.keys():
                self._files.rm_file(f"{self._root}/{name}")
                del self._seen[name]


def fetch(uri: str, cache: Path) -> Path:
    """Copy the tree at `uri` below `cache` and return where it is.

    Raises
    ------
    ReadError
        If the store cannot be read, or there is nothing at `uri`.
    """
    try:
        files, root = _open(uri)
        found = files.find(root, detail=True)
    except Exception as error:  # every fsspec backend raises its own kinds
        raise ReadError(uri, f"cannot be read ({_first_line(error)})") from error
    if not found:
        raise ReadError(uri, "nothing is there")
    name = root.rstrip("/").rsplit("/", 1)[-1]
    home = cache / hashlib.sha256(uri.encode()).hexdigest()[:16] / name
    for remote in sorted(found):
        relative = remote[len(root.rstrip("/")) :].lstrip("/")
        target = home / relative
        if not relative or not target.resolve().is_relative_to(home.resolve()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            files.get_file(remote, str(target))
        except Exception as error:  # every fsspec backend raises its own kinds
            raise ReadError(uri, f"{relative}: cannot be read ({_first_line(error)})") from error
    return home


def _open(uri: str) -> tuple[AbstractFileSystem, str]:
    try:
        import fsspec
    except ImportError:
        raise ImportError("needs fsspec: pip install 'trainscope[remote]'") from None
    files, root = fsspec.core.url_to_fs(uri)
    return files, str(root)


def _first_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__

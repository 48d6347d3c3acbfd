"""Speaks to remote stores through fsspec, and copies what is there to read it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainscope.core.errors import ConfigError, ReadError, RemoteError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def is_uri(path: str) -> bool:
    """Tell whether `path` is a URI with a scheme (``s3://``...) rather than a local path."""
    scheme = urlsplit(path).scheme
    return "://" in path and len(scheme) > 1


def check(uri: str) -> None:
    """See that `uri` can be spoken to at all, without speaking to it.

    Raises
    ------
    ConfigError
        If fsspec or the package for the scheme is missing, or the scheme is unknown.
    """
    try:
        _fsspec().get_filesystem_class(urlsplit(uri).scheme or "file")
    except (ImportError, ValueError) as error:
        raise ConfigError(f"storage_uri = {uri!r}: {error}") from None


def connect(uri: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a URI, and the path in it. May wait for the remote store."""
    files, root = _fsspec().core.url_to_fs(uri)
    return files, str(root)


@contextmanager
def answering(uri: str) -> Iterator[None]:
    """Turn whatever a remote store says into one line.

    Raises
    ------
    RemoteError
        If it refuses or does not answer.
    """
    try:
        yield
    except Exception as error:  # every fsspec backend raises its own kinds
        raise RemoteError(f"{uri}: cannot be written ({_first_line(error)})") from error


def fetch(uri: str, cache: Path) -> Path:
    """Copy the file or tree at `uri` below `cache` and return where it is.

    Raises
    ------
    ReadError
        If the store cannot be read, there is nothing at `uri`, or the package for its scheme is missing.
    """
    with _readable(uri):
        files, root = connect(uri)
        root = root.rstrip("/")
        found = files.find(root, detail=True)
    if not found:
        raise ReadError(uri, "nothing is there")
    # With the name of what it lies in: a log called metrics.csv is named after its folder.
    last = ["_" if part in ("", ".", "..") else part for part in root.split("/")[-2:]]
    home = cache.joinpath(hashlib.sha256(uri.encode()).hexdigest()[:16], *last)
    for remote in sorted(found):
        relative = remote[len(root) :].lstrip("/")
        target = home / relative if relative else home
        if not target.resolve().is_relative_to(home.resolve()):
            continue
        with _readable(uri, relative):
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(remote, str(target))
    return home


@contextmanager
def _readable(uri: str, inside: str = "") -> Iterator[None]:
    try:
        yield
    except (ImportError, ValueError) as error:  # no fsspec, no package for the scheme, no such scheme
        raise ReadError(uri, _first_line(error, kind=False)) from None
    except FileNotFoundError:
        raise ReadError(uri, "nothing is there") from None
    except Exception as error:  # every fsspec backend raises its own kinds
        raise ReadError(uri, f"{inside and inside + ': '}cannot be read ({_first_line(error)})") from error


def _fsspec() -> ModuleType:
    try:
        import fsspec
    except ImportError:
        raise ImportError("needs fsspec: pip install 'trainscope[remote]'") from None
    found: ModuleType = fsspec
    return found


def _first_line(error: BaseException, *, kind: bool = True) -> str:
    text = " ".join(str(error).split())[:200]
    if not kind:
        return text[:1].lower() + text[1:]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

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
    """Copy the tree at `uri` below `cache` and return where it is.

    Raises
    ------
    ReadError
        If the store cannot be read, or there is nothing at `uri`.
    """
    try:
        files, root = connect(uri)
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


def _fsspec() -> ModuleType:
    try:
        import fsspec
    except ImportError:
        raise ImportError("needs fsspec: pip install 'trainscope[remote]'") from None
    found: ModuleType = fsspec
    return found


def _first_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__

"""Every error trainscope raises on purpose.

    TrainscopeError
    ├── ReadError         a log exists but cannot be understood
    │   └── NoReaderError no reader recognises the path
    ├── NoDataError       nothing matched, or what matched holds nothing to judge
    ├── RecorderError     the recorder was used out of order
    ├── ConfigError       a settings file or an option is wrong
    ├── StoreError        a recorded run cannot be written
    │   └── RemoteError   its copy in a remote store cannot
    ├── GitHubError       GitHub refuses, or cannot be reached
    └── TrainingFailedError  a training command crashed, timed out or took no step

Library code raises these and never prints or exits; ``cli/`` alone turns them into messages and
exit codes. A message is one line: where, what, and the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class TrainscopeError(Exception):
    """Base class: catch this to catch everything trainscope means to say."""


class ReadError(TrainscopeError):
    """A log exists but cannot be understood.

    Parameters
    ----------
    path : Path or str
        The file, as the user named it.
    reason : str
        What is wrong and what to do, lower case, no full stop.
    line : int, optional
        1-based line the reason is about.
    """

    def __init__(self, path: Path | str, reason: str, *, line: int | None = None) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {reason}")
        self.path, self.line, self.reason = str(path), line, reason


class NoReaderError(ReadError):
    """No reader recognises the path."""


class NoDataError(TrainscopeError):
    """Nothing matched, or what matched holds nothing that could be judged."""


class ConfigError(TrainscopeError):
    """A settings file or an option is wrong."""


class RecorderError(TrainscopeError):
    """The recorder was asked for something out of order: attached twice, a step without attaching."""


class StoreError(TrainscopeError):
    """A recorded run cannot be written: disk full, folder gone, remote store silent."""


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Turn what the operating system says of a file in `folder` into one line that names it.

    Raises
    ------
    StoreError
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written ({error.strerror or error})") from None


class RemoteError(StoreError):
    """The copy of a recorded run in a remote store cannot be written; the run itself is whole."""


class GitHubError(TrainscopeError):
    """GitHub refuses, or cannot be reached.

    Parameters
    ----------
    message : str
    status : int, optional
        HTTP status of a refusal; 0 where there was no answer.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class TrainingFailedError(TrainscopeError):
    """A training command crashed, ran out of time, or took no optimizer step.

    Parameters
    ----------
    message : str
    tail : sequence of str
        The last lines the command printed.
    """

    def __init__(self, message: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tail = tuple(tail)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest of `known`, or what is allowed."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; allowed: {', '.join(options)}" if options else ""

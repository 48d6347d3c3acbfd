"""Runs git in a repository of our own, so that nobody's checkout, index or credentials are touched."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from trainscope.core.errors import GitHubError

SECONDS = 300
"""Longest time of one git command."""
_NAME, _MAIL = "github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com"


@dataclass(frozen=True, slots=True)
class Done:
    """How a git command ended."""

    code: int
    out: bytes
    error: str


@dataclass(frozen=True, slots=True)
class Git:
    """A bare repository with one remote.

    Parameters
    ----------
    folder : Path
    remote : str
        Address of the repository.
    token : str
        For the remote; given to git through its environment only, never in an argument, an address or a file.
    """

    folder: Path
    remote: str
    token: str

    def run(self, *args: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run git and return what it printed.

        Raises
        ------
        GitHubError
            If it fails; with what it said.
        """
        done = self.attempt(*args, data=data, env=env)
        if done.code:
            raise GitHubError(f"git {args[0]}: {done.error or f'exit code {done.code}'}")
        return done.out

    def attempt(self, *args: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        """Run git and return how it ended.

        Raises
        ------
        GitHubError
            If there is no git, or it hangs.
        """
        try:
            done = subprocess.run(
                ["git", "-C", str(self.folder), *args],
                input=data,
                capture_output=True,
                check=False,
                timeout=SECONDS,
                env={**self._environment(), **(env or {})},
            )
        except FileNotFoundError:
            raise GitHubError("git is not installed on this runner") from None
        except subprocess.TimeoutExpired:
            raise GitHubError(f"git {args[0]}: not done in {SECONDS} s") from None
        return Done(done.returncode, done.stdout, " ".join(done.stderr.decode("utf-8", "replace").split())[-600:])

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        found = {
            **kept,
            # Prompts and messages that a machine reads.
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_AUTHOR_NAME": _NAME,
            "GIT_AUTHOR_EMAIL": _MAIL,
            "GIT_COMMITTER_NAME": _NAME,
            "GIT_COMMITTER_EMAIL": _MAIL,
        }
        where = urlsplit(self.remote)
        if self.token and where.scheme in ("http", "https"):
            secret = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
            found |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{where.scheme}://{where.netloc}/.extraheader",
                "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {secret}",
            }
        return found


@contextmanager
def repository(remote: str, token: str) -> Iterator[Git]:
    """Make an empty bare repository for a while.

    Raises
    ------
    GitHubError
        If git cannot make one.
    """
    # On Windows a file that git holds a moment longer cannot be removed; the runner cleans up in the end.
    with tempfile.TemporaryDirectory(prefix="trainscope-git-", ignore_cleanup_errors=True) as folder:
        git = Git(Path(folder), remote, token)
        git.run("init", "--quiet", "--bare", ".")
        git.run("remote", "add", "origin", remote)
        yield git

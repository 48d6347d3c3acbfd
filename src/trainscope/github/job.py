"""What the runner says of the job that a step runs in: repository, event, commit, token."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainscope.core.errors import ConfigError

TOKEN = "TRAINSCOPE_TOKEN"
"""Variable that holds the token; a name of our own, so that a training command never finds it by habit."""
MAX_EVENT_BYTES = 32 << 20
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_TOKEN = re.compile(r"[!-~]*")
"""What an HTTP header can carry."""
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The pull request that an event is about."""

    number: int
    head: str
    """Commit that was pushed, not the merge commit that is checked out."""
    base: str


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a workflow run."""

    repository: str
    event_name: str
    event: Mapping[str, Any]
    sha: str
    ref: str
    run_id: int
    attempt: int
    server_url: str
    api_url: str
    token: str
    workspace: Path
    temp: Path

    @property
    def run_url(self) -> str:
        """Address of the workflow run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"

    @property
    def remote(self) -> str:
        """Address of the repository for git."""
        return f"{self.server_url}/{self.repository}"

    @property
    def pull_request(self) -> PullRequest | None:
        """The pull request that the event is about, None for any other event."""
        found = self.event.get("pull_request")
        if not isinstance(found, dict):
            return None
        head, base = (part_of(found, side, "sha") for side in ("head", "base"))
        number = found.get("number")
        if not isinstance(number, int) or not is_sha(head) or not is_sha(base):
            return None
        return PullRequest(number, str(head), str(base))

    @property
    def head(self) -> str:
        """Commit that the job is about: that of the pull request, not its merge with the base."""
        found = self.pull_request
        return self.sha if found is None else found.head

    @property
    def default_branch(self) -> str:
        """Default branch of the repository, as far as the event says."""
        return str(part_of(self.event, "repository", "default_branch") or "main")


def job_of(env: Mapping[str, str]) -> Job:
    """Return the job that some environment variables describe.

    Raises
    ------
    ConfigError
        If this is no job of a workflow, its event cannot be read, or its token cannot be sent.
    """
    missing = [name for name in ("GITHUB_REPOSITORY", "GITHUB_EVENT_NAME", "GITHUB_SHA") if not env.get(name)]
    if missing:
        raise ConfigError(f"{missing[0]} is not set: this command runs in a step of a GitHub workflow only")
    if not _REPOSITORY.fullmatch(env["GITHUB_REPOSITORY"]):
        raise ConfigError(f"GITHUB_REPOSITORY: {env['GITHUB_REPOSITORY']!r} is no owner/name")
    sha = env["GITHUB_SHA"].lower()
    if not is_sha(sha):
        raise ConfigError(f"GITHUB_SHA: {env['GITHUB_SHA'][:80]!r} is not the whole name of a commit")
    api = (env.get("GITHUB_API_URL") or "https://api.github.com").rstrip("/")
    if not _ADDRESS.fullmatch(api):
        raise ConfigError(f"GITHUB_API_URL: {api[:80]!r} is no web address such as https://api.github.com")
    # A secret that was pasted with its line end is a usual one; what else is in it is never shown.
    token = env.get(TOKEN, "").strip()
    if not _TOKEN.fullmatch(token):
        raise ConfigError("github-token: holds blanks, line ends or letters that no token has; store the secret anew")
    server = env.get("GITHUB_SERVER_URL") or "https://github.com"
    return Job(
        repository=env["GITHUB_REPOSITORY"],
        event_name=env["GITHUB_EVENT_NAME"],
        event=_event(env.get("GITHUB_EVENT_PATH", "")),
        sha=sha,
        ref=env.get("GITHUB_REF", ""),
        run_id=_number(env, "GITHUB_RUN_ID"),
        attempt=_number(env, "GITHUB_RUN_ATTEMPT"),
        server_url=server.rstrip("/"),
        api_url=api,
        token=token,
        workspace=Path(env.get("GITHUB_WORKSPACE") or "."),
        temp=Path(env.get("RUNNER_TEMP") or "."),
    )


def is_sha(text: object) -> bool:
    """Tell whether this is the whole name of a commit."""
    return isinstance(text, str) and _SHA.fullmatch(text) is not None


def part_of(data: object, *keys: str) -> Any:  # noqa: ANN401 - JSON is whatever it is
    """Return what stands in nested objects under these keys, None where there is nothing."""
    for key in keys:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def _event(path: str) -> Mapping[str, Any]:
    if not path:
        return {}
    try:
        with Path(path).open("rb") as file:
            found = json.loads(file.read(MAX_EVENT_BYTES))
    except OSError as error:
        raise ConfigError(f"GITHUB_EVENT_PATH: {path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"GITHUB_EVENT_PATH: {path} is not JSON") from None
    return found if isinstance(found, dict) else {}


def _number(env: Mapping[str, str], name: str) -> int:
    text = env.get(name, "")
    # A runner of another make may say nothing; every number of GitHub's is above 0.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 1

"""Finds the pull request of a workflow run, and what is not to be trusted about one."""

from __future__ import annotations

from trainscope.core.errors import ConfigError
from trainscope.github.api import Api, path_of
from trainscope.github.job import Job, PullRequest, is_sha, part_of


def current_head(api: Api, repository: str, number: int) -> str:
    """Return the commit that a pull request is at now.

    Raises
    ------
    GitHubError
        If GitHub refuses, or cannot be reached.
    """
    return str(part_of(api.get(f"{path_of(repository)}/pulls/{number}"), "head", "sha") or "")


def pull_request_of_run(api: Api, job: Job) -> tuple[int, PullRequest | None]:
    """Return the id of the workflow run that an event of kind ``workflow_run`` is about, and its pull request.

    The number is never taken from an artifact, and the event names none for forks: it is asked for by the owner and
    branch that the commit came from, and the pull request must still be at that commit.

    Returns
    -------
    tuple of (int, PullRequest or None)
        None where the run has no open pull request that is still at its commit.

    Raises
    ------
    ConfigError
        If the event is of another kind.
    GitHubError
        If GitHub refuses, or cannot be reached.
    """
    run = job.event.get("workflow_run")
    run_id, head = part_of(run, "id"), part_of(run, "head_sha")
    if job.event_name != "workflow_run" or not isinstance(run_id, int) or not is_sha(head):
        raise ConfigError(f"the event {job.event_name!r} is no workflow_run: run this step in a workflow of that event")
    if part_of(run, "event") != "pull_request":
        return run_id, None
    owner, branch = part_of(run, "head_repository", "owner", "login"), part_of(run, "head_branch")
    if not isinstance(owner, str) or not isinstance(branch, str):
        return run_id, None
    path = f"{path_of(job.repository)}/pulls"
    for found in api.pages(path, {"state": "open", "head": f"{owner}:{branch}"}):
        number, base = part_of(found, "number"), part_of(found, "base", "sha")
        if part_of(found, "head", "sha") == head and isinstance(number, int) and is_sha(base):
            return run_id, PullRequest(number, str(head), str(base))
    return run_id, None


def artifact_of_run(api: Api, repository: str, run_id: int, name: str, limit: int) -> bytes | None:
    """Return the newest artifact of this name of a workflow run, None where it has none.

    Raises
    ------
    GitHubError
        If GitHub refuses, cannot be reached, or the artifact has more than `limit` bytes.
    """
    path = f"{path_of(repository)}/actions/runs/{run_id}/artifacts"
    ids = [
        found["id"]
        for found in api.pages(path, {"name": name}, key="artifacts")
        if part_of(found, "name") == name and not part_of(found, "expired") and isinstance(part_of(found, "id"), int)
    ]
    if not ids:
        return None
    return api.download(f"{path_of(repository)}/actions/artifacts/{max(ids)}/zip", limit)

"""The baseline of a check: the recorded run of the merge base, or of its nearest ancestor that has one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainscope.core.errors import GitHubError, writing_in
from trainscope.github.api import Api, path_of, segment
from trainscope.github.git import repository
from trainscope.github.history import POINTS, Entry, History, check_branch, nearest
from trainscope.github.job import Job, is_sha, part_of
from trainscope.github.result import BaselineSource

ANCESTORS = 100
"""How far back a baseline is looked for: one page of GitHub's commits."""
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    source: BaselineSource | None
    folder: Path | None
    """What ``trainscope ci --baseline`` takes."""
    note: str = ""
    """Why there is none."""


def find_baseline(job: Job, api: Api, branch: str, key: str, folder: Path) -> Found:
    """Look for the baseline of a job, and write it to a folder.

    Finding none, for whatever reason, is no error: it is said, and every finding then counts as new.

    Parameters
    ----------
    branch, key : str
        Where recorded runs are kept, and under which name.
    folder : Path
        A new folder for the baseline is made in it.

    Raises
    ------
    ConfigError
        If `branch` is no name of a branch.
    StoreError
        If `folder` cannot be written.
    """
    check_branch(branch)
    try:
        start = _start(job, api)
        if not start:
            return Found(None, None, f"the event {job.event_name} names no commit to compare with")
        with repository(job.remote, job.token) as git:
            history = History(git, branch)
            tip = history.tip()
            if not tip:
                return Found(None, None, f"there is no branch {branch} yet; record a run on {job.default_branch}")
            commits = _ancestors(job, api, start)
            history.fetch(tip, blobs=False)
            found = nearest(history.entries(tip), key, commits)
            if found is None:
                return Found(
                    None,
                    None,
                    f"{branch} has no run of check {key} at {start[:10]} or the {len(commits) - 1} commits before it",
                )
            entry, distance = found
            place = _export(history, entry, folder)
    except GitHubError as error:
        return Found(None, None, f"it could not be looked for ({error})")
    source = BaselineSource(sha=entry.sha, start=start, distance=distance, run_id=entry.run_id)
    return Found(source, place)


def _start(job: Job, api: Api) -> str:
    """Return the commit where the search begins, empty where the event has none."""
    pull = job.pull_request
    if pull is not None:
        compared = api.get(f"{path_of(job.repository)}/compare/{pull.base}...{pull.head}")
        found = part_of(compared, "merge_base_commit", "sha")
    elif job.event_name == "merge_group":
        found = part_of(job.event, "merge_group", "base_sha")
    elif job.event_name == "push":
        found = part_of(job.event, "before")
    else:
        parents = part_of(api.get(f"{path_of(job.repository)}/commits/{segment(job.sha)}"), "parents")
        found = part_of(parents[0], "sha") if isinstance(parents, list) and parents else None
    # A branch's first push has a "before" of zeros.
    return str(found) if is_sha(found) and found.strip("0") else ""


def _ancestors(job: Job, api: Api, start: str) -> list[str]:
    rows = api.get(f"{path_of(job.repository)}/commits", {"sha": start, "per_page": ANCESTORS})
    found = [str(part_of(row, "sha")) for row in rows if is_sha(part_of(row, "sha"))] if isinstance(rows, list) else []
    return found if start in found else [start, *found]


def _export(history: History, entry: Entry, folder: Path) -> Path:
    place = folder / entry.sha[:10]
    left = MAX_BYTES
    with writing_in(place):
        (place / "bundle").mkdir(parents=True, exist_ok=True)
        for name, blob in entry.files.items():
            match = POINTS.fullmatch(name)
            if match is None:
                continue
            content = history.read(blob)
            left -= len(content)
            if left < 0:
                raise GitHubError(f"{entry.path}: the baseline has more than {MAX_BYTES >> 20} MiB")
            (place / "bundle" / match[1]).write_bytes(content)
    return place

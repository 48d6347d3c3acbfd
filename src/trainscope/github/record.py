"""What the history keeps of a check, and what it refuses to keep: nothing of a pull request ever."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

from trainscope.core.errors import ConfigError, GitHubError, ReadError, TrainscopeError, writing_in
from trainscope.github.artifact import DOCUMENT, RECORD, Bundle, read_folder
from trainscope.github.history import POINTS, Entry, History
from trainscope.github.job import Job, is_sha, part_of
from trainscope.github.result import FILE
from trainscope.site import bundle as records
from trainscope.site.archive import archived
from trainscope.site.bundle import RECORDS, Record
from trainscope.site.record_parts import EARLIEST, LATEST

EVENTS = ("push", "schedule", "workflow_dispatch", "repository_dispatch", "release")
"""Events whose code is the repository's own."""
MAX_RUNS = 64
"""Runs of one check that are kept, such as the ranks of a distributed training."""
MAX_POINTS_BYTES = 1 << 20
"""Most bytes of a run's points; a longer log is no baseline, because the branch keeps every one."""
MAX_ENTRY_BYTES = 8 << 20


def check_event(job: Job) -> None:
    """Refuse to record what is not the default branch's own.

    Raises
    ------
    ConfigError
        On a pull request, another branch, or a workflow that another one started.
    """
    if job.event_name not in EVENTS:
        raise ConfigError(
            f"a run of the event {job.event_name} is not recorded: call record on {', '.join(EVENTS)} only"
        )
    wanted = f"refs/heads/{job.default_branch}"
    if job.event_name == "schedule" and not part_of(job.event, "repository", "default_branch"):
        # Its event says nothing of the repository; GitHub starts it on the default branch alone.
        return
    if job.event_name != "release" and job.ref != wanted:
        raise ConfigError(f"{job.ref or 'no branch'} is not recorded: the history is that of {wanted}")


def checked_branch(branch: str, job: Job) -> str:
    """Return the branch to record on, which is rewritten now and then, so never one that holds code.

    Raises
    ------
    ConfigError
        If it is the default branch, or the one that the job is of.
    """
    if branch == job.default_branch or f"refs/heads/{branch}" == job.ref:
        raise ConfigError(f"data-branch: {branch} is the branch of the code; recorded runs need one of their own")
    return branch


def entry_of(folder: Path, job: Job) -> tuple[Entry, dict[str, bytes], list[str]]:
    """Return where a bundle goes on the branch, its files, and what was left out of it.

    Raises
    ------
    ReadError
        If the folder holds no valid bundle.
    ConfigError
        If the bundle is of another commit.
    """
    found = read_folder(folder)
    if found.result.head is not None and found.result.head != job.head:
        raise ConfigError(f"{folder}: is of commit {found.result.head[:10]}, and this job is at {job.head[:10]}")
    if not is_sha(job.head):
        raise ConfigError(f"GITHUB_SHA: {job.head[:80]!r} is no commit")
    files = {FILE: found.result.to_json().encode()}
    notes = list(found.dropped)
    if found.document is not None:
        files[DOCUMENT] = _compact(found)
    for path in sorted((folder / RECORDS).glob(f"*/{records.NAME}"))[:MAX_RUNS]:
        try:
            record = _dated(records.read(path), job)
        except TrainscopeError as error:
            notes.append(str(error))
            continue
        files[f"{RECORDS}/{record.id}/{records.NAME}"] = records.to_text(record).encode("ascii")
    files |= _points(folder, notes)
    return Entry(job.run_id, job.attempt, job.head, found.result.key), _within_limit(files, notes), notes


def export_records(history: History, folder: Path) -> int:
    """Write the newest record of every run on the branch to ``folder/ID/record.js``; return how many there are.

    Raises
    ------
    GitHubError
        If there is no branch, or it cannot be read.
    StoreError
        If `folder` cannot be written.
    """
    tip = history.tip()
    if not tip:
        raise GitHubError(f"there is no branch {history.branch} yet; record a run first")
    history.fetch(tip, blobs=True)
    blobs: dict[str, str] = {}
    for entry in history.entries(tip):  # the oldest first, so that the newest stays
        for name, blob in entry.files.items():
            match = RECORD.fullmatch(name)
            if match is not None:
                blobs[match[1]] = blob
    with writing_in(folder):
        for run, blob in blobs.items():
            (folder / run).mkdir(parents=True, exist_ok=True)
            (folder / run / records.NAME).write_bytes(history.read(blob))
    return len(blobs)


def _compact(found: Bundle) -> bytes:
    assert found.document is not None
    return found.document.model_dump_json(exclude_defaults=True).encode() + b"\n"


def _dated(record: Record, job: Job) -> Record:
    """Return a record with the commit and branch it belongs to, and its date where its log has none."""
    about = {"commit": job.head, "branch": job.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")[:200]}
    stamp = part_of(job.event, "head_commit", "timestamp")
    dates = {}
    if record.about.started is None and isinstance(stamp, str):
        try:
            seconds = int(datetime.datetime.fromisoformat(stamp).timestamp())
        except (ValueError, OverflowError):
            seconds = 0
        # Whoever commits sets the clock.
        if EARLIEST <= seconds < LATEST:
            dates = {"started": seconds}
    return record.model_copy(update={"about": record.about.model_copy(update={**about, **dates})})


def _points(folder: Path, notes: list[str]) -> dict[str, bytes]:
    found = {}
    for path in sorted((folder / "bundle").glob("*.arrow"))[:MAX_RUNS]:
        name = f"bundle/{path.name}"
        if not POINTS.fullmatch(name):
            continue
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ReadError(path, f"cannot be read ({error.strerror})") from None
        if len(content) > MAX_POINTS_BYTES:
            notes.append(
                f"{path.name}: {len(content) >> 10} KiB of points are more than the {MAX_POINTS_BYTES >> 10} KiB that "
                "a baseline may have; log less often, or compare with a baseline file"
            )
            continue
        found[name] = content
    return found


def _within_limit(files: Mapping[str, bytes], notes: list[str]) -> dict[str, bytes]:
    """Return files that fit: records lose what their pages draw first, then runs are left out from the end."""
    kept = dict(files)
    names = [name for name in kept if name.startswith(f"{RECORDS}/")]
    for name in reversed(names):
        if sum(map(len, kept.values())) <= MAX_ENTRY_BYTES:
            break
        kept[name] = records.to_text(archived(records.from_text(kept[name].decode("ascii"), name))).encode("ascii")
        notes.append(f"{name}: reduced, because the check has more than {MAX_ENTRY_BYTES >> 20} MiB")
    for name in reversed([n for n in kept if "/" in n]):
        if sum(map(len, kept.values())) <= MAX_ENTRY_BYTES:
            break
        del kept[name]
        notes.append(f"{name}: left out, because the check has more than {MAX_ENTRY_BYTES >> 20} MiB")
    return kept

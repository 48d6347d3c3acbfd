"""The branch that keeps recorded runs: one folder a check, added without races, never merged, never checked out.

``runs/COMMIT/KEY/RUN-ATTEMPT/`` holds ``check.json``, ``findings.json``, ``bundle/*.arrow`` (what later checks are
compared with) and ``records/ID/record.js`` (what the site is built from). Two jobs never write the same file, so a
push that lost a race only has to be made again on the new tip.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainscope.core.errors import ConfigError, GitHubError
from trainscope.github.git import Git
from trainscope.github.result import KEY

BRANCH = "trainscope-data"
ROOT = "runs"
TRIES = 40
KEEP_SLACK = 1.2
"""How many times as many runs as wanted there may be before the branch is cut: cutting rewrites it."""
_ENTRY = re.compile(
    rf"{ROOT}/(?P<sha>[0-9a-f]{{40,64}})/(?P<key>{KEY})/(?P<run>\d{{1,19}})-(?P<attempt>\d{{1,9}})/(?P<file>.+)",
    re.ASCII,
)
POINTS = re.compile(r"bundle/([0-9A-Za-z-]{1,40}\.arrow)", re.ASCII)
"""Name, in an entry, of the points that later runs are compared with."""
_BRANCH = re.compile(r"(?!.*(?:\.\.|//|\.lock$|@\{))[A-Za-z0-9][\w./-]{0,200}(?<![./])", re.ASCII)
_RACE = re.compile(
    r"stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref|reference already exists|"
    r"incorrect old value|unable to update"
)
_FORBIDDEN = re.compile(
    r"403|[Pp]ermission|denied|[Aa]uthentication|could not read Username|GH0\d\d|protected|declined"
)


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One recorded check."""

    run_id: int
    attempt: int
    sha: str
    key: str
    files: Mapping[str, str] = field(compare=False, default_factory=dict)
    """Name in the entry's folder to the name of its blob."""

    @property
    def path(self) -> str:
        """Folder of the entry on the branch."""
        return f"{ROOT}/{self.sha}/{self.key}/{self.run_id}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class History:
    """The branch of one repository."""

    git: Git
    branch: str

    def __post_init__(self) -> None:
        """Refuse what is no name of a branch.

        Raises
        ------
        ConfigError
        """
        check_branch(self.branch)

    def tip(self) -> str:
        """Return the branch's newest commit, empty where there is no branch.

        Raises
        ------
        GitHubError
            If the repository cannot be read.
        """
        found = self.git.run("ls-remote", "origin", f"refs/heads/{self.branch}").split()
        return found[0].decode("ascii", "replace") if found else ""

    def fetch(self, tip: str, *, blobs: bool) -> None:
        """Get the tree of a commit, and its files too if wanted.

        Raises
        ------
        GitHubError
            If the repository cannot be read.
        """
        self.git.run(
            "fetch", "--quiet", "--no-tags", "--depth=1", *([] if blobs else ["--filter=blob:none"]), "origin", tip
        )

    def entries(self, tip: str) -> list[Entry]:
        """Return the recorded checks of a fetched commit, the oldest first."""
        return self._listed(tip)[0]

    def _listed(self, tip: str) -> tuple[list[Entry], list[bytes]]:
        """Return the recorded checks of a fetched commit, and its other files as git lists them."""
        found: dict[tuple[int, int, str, str], dict[str, str]] = {}
        others = []
        for line in self.git.run("ls-tree", "-r", "-z", "--full-tree", tip).split(b"\0"):
            about, _, name = line.partition(b"\t")
            match = _ENTRY.fullmatch(name.decode("utf-8", "replace"))
            words = about.split()
            if match is not None and len(words) == 3 and words[0] == b"100644":
                place = (int(match["run"]), int(match["attempt"]), match["sha"], match["key"])
                found.setdefault(place, {})[match["file"]] = words[2].decode("ascii", "replace")
            elif line:
                others.append(line)
        return [Entry(*place, files) for place, files in sorted(found.items())], others

    def read(self, blob: str) -> bytes:
        """Return the content of a file.

        Raises
        ------
        GitHubError
            If it cannot be read.
        """
        return self.git.run("cat-file", "blob", blob)

    def append(
        self,
        entry: Entry,
        files: Mapping[str, bytes],
        *,
        keep: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> int:
        """Add the files of a check to the branch, whoever else is adding others.

        Parameters
        ----------
        entry : Entry
            Where they go; what stands there already gives way.
        files : mapping of name to bytes
        keep : int, optional
            Newest checks to keep; the branch becomes one commit when there are clearly more. 0 keeps all.

        Returns
        -------
        int
            How many times another push was faster.

        Raises
        ------
        GitHubError
            If the branch is not one of ours, may not be written, or every race was lost.
        """
        said = ""
        for attempt in range(TRIES):
            tip = self.tip()
            if tip:
                self.fetch(tip, blobs=False)
            commit = self._commit(tip, entry, files, keep)
            if commit == tip:
                return attempt
            done = self.git.attempt(
                "push",
                "--quiet",
                "--porcelain",
                f"--force-with-lease=refs/heads/{self.branch}:{tip}",
                "origin",
                f"{commit}:refs/heads/{self.branch}",
            )
            if done.code == 0:
                return attempt
            said = f"{done.error} {done.out.decode('utf-8', 'replace')}"
            if _FORBIDDEN.search(said) and not _RACE.search(said):
                raise GitHubError(
                    f"{self.branch}: may not be pushed ({said.strip()[:300]}); the job needs contents: write"
                )
            sleep(random.uniform(0.05, 0.25) * (1 + min(attempt, 12)))
        raise GitHubError(f"{self.branch}: every one of {TRIES} pushes failed; the last said: {said.strip()[:300]}")

    def _commit(self, tip: str, entry: Entry, files: Mapping[str, bytes], keep: int) -> str:
        """Return a commit that has the files: after the tip, the tip itself if it has them, or alone after a cut."""
        blobs = {name: self._store(content) for name, content in files.items()}
        entries, others = self._listed(tip) if tip else ([], [])
        if others and not entries:
            raise GitHubError(
                f"{self.branch}: holds other files and no recorded run; name a branch of its own with data-branch"
            )
        before = [e for e in entries if e.path != entry.path]
        kept = before
        if keep and len(before) + 1 > keep * KEEP_SLACK:
            kept = before[max(len(before) - keep + 1, 0) :]
            self.git.run("fetch", "--quiet", "--refetch", "--no-filter", "--no-tags", "--depth=1", "origin", tip)
        new = Entry(entry.run_id, entry.attempt, entry.sha, entry.key, blobs)
        tree = self._tree([*kept, new], others)
        if tip and self.git.run("rev-parse", f"{tip}^{{tree}}").split()[0].decode() == tree:
            return tip
        parents = ["-p", tip] if tip and len(kept) == len(before) else []
        said = f"Record {entry.key} at {entry.sha[:10]} (run {entry.run_id})"
        return self.git.run("commit-tree", tree, *parents, "-m", said).split()[0].decode()

    def _store(self, content: bytes) -> str:
        return self.git.run("hash-object", "-w", "--stdin", data=content).split()[0].decode()

    def _tree(self, entries: Iterable[Entry], others: Iterable[bytes]) -> str:
        """Return a tree of recorded checks and of what else there was, such as a README of somebody's."""
        ours = (f"100644 blob {blob}\t{e.path}/{name}" for e in entries for name, blob in sorted(e.files.items()))
        lines = [*others, *(line.encode() for line in ours)]
        index = {"GIT_INDEX_FILE": str(self.git.folder / "trainscope-index")}
        self.git.run("read-tree", "--empty", env=index)
        self.git.run(
            "update-index", "-z", "--add", "--index-info", data=b"".join(line + b"\0" for line in lines), env=index
        )
        # Files that were not fetched are on the server.
        return self.git.run("write-tree", "--missing-ok", env=index).split()[0].decode()


def check_branch(name: str) -> None:
    """Refuse what is no name of a branch.

    Raises
    ------
    ConfigError
    """
    if not _BRANCH.fullmatch(name):
        raise ConfigError(f"data-branch: {name[:80]!r} is no name of a branch")


def nearest(entries: Sequence[Entry], key: str, commits: Sequence[str]) -> tuple[Entry, int] | None:
    """Return the newest recorded run of the first of some commits that has one to compare with, and its place."""
    by_sha: dict[str, Entry] = {}
    for entry in entries:  # the oldest first
        if entry.key == key and any(name.startswith("bundle/") for name in entry.files):
            by_sha[entry.sha] = entry
    return next(((by_sha[sha], place) for place, sha in enumerate(commits) if sha in by_sha), None)

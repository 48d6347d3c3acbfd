"""One comment a check on a pull request: found again by its marker and its author, changed in place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainscope.core.errors import GitHubError
from trainscope.github.api import Api, path_of
from trainscope.github.artifact import Bundle
from trainscope.github.job import part_of
from trainscope.github.result import check_key

AUTHOR = "github-actions[bot]"
"""Who a workflow's own token writes as."""
READ_ONLY = (401, 403, 404)
"""How GitHub answers a token that may not write, without saying that a thing exists."""
_ADDRESS = re.compile(r"https?://[^\s<>\"'`()\[\]]+")


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a comment."""

    what: str
    """``created``, ``updated``, ``unchanged``, ``not needed``, or why nothing was written."""
    url: str = ""


def marker_of(key: str) -> str:
    """Return the first line of a comment, by which it is found again.

    Raises
    ------
    ConfigError
        If `key` is no name.
    """
    return f"<!-- trainscope:comment:v1 key={check_key(key)} -->"


def is_clean(bundle: Bundle) -> bool:
    """Tell whether there is nothing to say: passed, nothing above an information, nothing fixed."""
    document = bundle.document
    if bundle.result.verdict != "pass" or document is None:
        return False
    loud = [f for run in document.runs for f in run.findings if f.severity != "info" and f.status != "known"]
    return not loud and not (document.baseline is not None and document.baseline.fixed)


class Comments:
    """The comments of one pull request, as far as they are ours.

    Parameters
    ----------
    api : Api
    repository : str
        ``owner/name``
    number : int
        Of the pull request.
    author : str, optional
        Login that our comments have; others' are left alone, whatever they begin with.
    """

    def __init__(self, api: Api, repository: str, number: int, author: str = AUTHOR) -> None:
        self._api, self._author = api, author
        self._issues = f"{path_of(repository)}/issues"
        self._comments = f"{self._issues}/{number}/comments"

    def put(self, body: str, marker: str, *, create: bool) -> Posted:
        """Make our comment say `body`.

        Parameters
        ----------
        body : str
            Begins with `marker`.
        create : bool
            Whether to write one where there is none.

        Raises
        ------
        GitHubError
            If GitHub refuses, or cannot be reached.
        """
        mine = self._mine(marker)
        if not mine and not create:
            return Posted("not needed")
        if not mine:
            new = self._api.send("POST", self._comments, {"body": body})
            # Another job may have written at the same moment, or a lost answer may have been a written comment.
            mine = self._mine(marker) or [new]
            if _id(mine[0]) == _id(new):
                self._remove(mine[1:])
                return Posted("created", _url(new))
        if mine[0].get("body") == body:
            self._remove(mine[1:])
            return Posted("unchanged", _url(mine[0]))
        changed = self._api.send("PATCH", f"{self._issues}/comments/{_id(mine[0])}", {"body": body})
        self._remove(mine[1:])
        return Posted("updated", _url(changed))

    def _mine(self, marker: str) -> list[dict[str, Any]]:
        """Return our comments, the oldest first."""
        found = [
            comment
            for comment in self._api.pages(self._comments)
            if isinstance(comment, dict)
            and part_of(comment, "user", "login") == self._author
            and str(comment.get("body", "")).split("\n", 1)[0].rstrip("\r") == marker
        ]
        return sorted(found, key=_id)

    def _remove(self, others: list[dict[str, Any]]) -> None:
        """Remove what a race left behind; all jobs keep the oldest, so none removes the last one."""
        for other in others:
            try:
                self._api.send("DELETE", f"{self._issues}/comments/{_id(other)}")
            except GitHubError as error:
                if error.status != 404:
                    raise


def is_read_only(error: GitHubError) -> bool:
    """Tell whether an error means that the token may not write."""
    return error.status in READ_ONLY


def _id(comment: Any) -> int:  # noqa: ANN401 - JSON is whatever it is
    found = comment.get("id") if isinstance(comment, dict) else None
    if not isinstance(found, int):
        raise GitHubError("GitHub answered with a comment that has no id")
    return found


def _url(comment: Any) -> str:  # noqa: ANN401 - JSON is whatever it is
    found = part_of(comment, "html_url")
    return found if isinstance(found, str) and _ADDRESS.fullmatch(found) else ""

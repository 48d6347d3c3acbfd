"""The inputs of the action: variables called ``TRAINSCOPE_INPUT_*``, checked here because the runner checks nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.github.annotations import MAX_PER_LEVEL
from trainscope.github.comment import AUTHOR
from trainscope.github.history import BRANCH
from trainscope.github.result import check_key
from trainscope.report.document import FailOn

PREFIX = "TRAINSCOPE_INPUT_"
COMMENT_MODES = ("never", "auto", "always")
FAIL_ON: tuple[str, ...] = get_args(FailOn)
_URL = re.compile(r"https?://[^\s<>\"'`{}|\\^()\[\]]+")
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,80}(\[bot\])?", re.ASCII)
_ARTIFACT = re.compile(r"[^\":<>|*?\r\n\\/\0]{1,200}")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one step, as text."""

    given: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return an input without the blanks around it."""
        return self.given.get(f"{PREFIX}{name.upper().replace('-', '_')}", "").strip() or default

    def lines(self, name: str) -> list[str]:
        """Return the lines of an input that are not blank."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Return one of some words.

        Raises
        ------
        ConfigError
            If it is none of them.
        """
        found = self.text(name, default)
        if found not in allowed:
            raise ConfigError(f"{name}: {found[:80]!r} is not allowed{did_you_mean(found[:80], filter(None, allowed))}")
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether an input is true.

        Raises
        ------
        ConfigError
            If it is neither ``true`` nor ``false``.
        """
        return self.choice(name, ("true", "false"), str(default).lower()) == "true"

    def number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a whole number.

        Raises
        ------
        ConfigError
            If it is none, or outside the limits.
        """
        found = self.text(name, str(default))
        if not (found.isascii() and found.isdigit() and len(found) < 12 and least <= int(found) <= most):
            raise ConfigError(f"{name}: expected a whole number from {least} to {most}, got {found[:80]!r}")
        return int(found)

    @property
    def key(self) -> str:
        """Name of the check."""
        return check_key(self.text("key", "default"))

    @property
    def bundle_path(self) -> Path:
        """Folder of what a check left.

        Raises
        ------
        ConfigError
            If it is not given.
        """
        found = self.text("bundle-path")
        if not found:
            raise ConfigError("bundle-path: is not given; it is the output bundle-path of the check")
        return Path(found)

    @property
    def data_branch(self) -> str:
        """Branch that holds recorded runs."""
        return self.text("data-branch", BRANCH)

    def comment(self, default: str) -> str:
        """Return whether to write a comment: ``never``, ``auto`` or ``always``."""
        return self.choice("comment", COMMENT_MODES, default)

    @property
    def comment_author(self) -> str:
        """Login under which the token writes."""
        return self._matching("comment-author", _LOGIN, AUTHOR, "the login of a user or a bot")

    @property
    def annotations(self) -> int:
        """Most annotations of each level."""
        return self.number("annotations", 0, MAX_PER_LEVEL, MAX_PER_LEVEL)

    @property
    def site_url(self) -> str:
        """Address of the published site, empty without one."""
        return self._matching("site-url", _URL, "", "a web address such as https://example.org/runs/")

    @property
    def artifact_name(self) -> str:
        """Name of the artifact that holds a bundle."""
        return self._matching("artifact-name", _ARTIFACT, "trainscope", "the name of an artifact")

    def _matching(self, name: str, pattern: re.Pattern[str], default: str, what: str) -> str:
        found = self.text(name, default)
        if found and not pattern.fullmatch(found):
            raise ConfigError(f"{name}: {found[:80]!r} is not {what}")
        return found

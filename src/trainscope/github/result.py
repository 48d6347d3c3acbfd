"""``check.json``: how one check of a job ended, beside the report document; what later steps and jobs render.

A check that crashed or found no data has no report document, so this file says why. Fields are added (and the minor
version raised), never renamed, removed or given another meaning within a major version.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal

from pydantic import Field

from trainscope.core.errors import ConfigError
from trainscope.report.part import Count, Part

VERSION = "1.0"
FILE = "check.json"
MAX_OUTPUT_LINES, MAX_LINE = 20, 400

KEY = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern of the name of a check: it stands in a path and in a comment's marker."""
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Key = Annotated[str, Field(pattern=rf"^{KEY}$")]
VerdictName = Literal["pass", "fail", "error"]
Line = Annotated[str, Field(max_length=MAX_LINE)]
RunNumber = Annotated[int, Field(ge=0, lt=2**63)]


class BaselineSource(Part):
    """Where the baseline of a check comes from."""

    sha: Sha
    """Commit whose recorded run it is."""
    start: Sha
    """Commit where the search began: the merge base of a pull request, else the commit before."""
    distance: Count
    """How many commits the one lies before the other."""
    run_id: RunNumber
    """Workflow run that recorded it."""


class CheckResult(Part):
    """How one check ended."""

    version: str = Field(default=VERSION, pattern=r"^1\.\d{1,6}$")
    key: Key = "default"
    """Name of this check among several of a repository."""
    verdict: VerdictName
    exit_code: Annotated[int, Field(ge=0, le=255)]
    """Of ``trainscope ci``."""
    reason: Annotated[str, Field(max_length=1000)] = ""
    """Why, where there is no report document."""
    output: Annotated[list[Line], Field(max_length=MAX_OUTPUT_LINES)] = Field(default_factory=list)
    """Last lines of a command that failed."""
    head: Sha | None = None
    """Commit that was checked."""
    data_branch: Annotated[str, Field(max_length=255)] = ""
    baseline: BaselineSource | None = None
    baseline_note: Annotated[str, Field(max_length=1000)] = ""
    """Why there is no baseline, where one was asked for."""

    def to_json(self) -> str:
        """Return the file: ASCII JSON, two spaces deep, the same bytes for the same content."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def check_key(key: str) -> str:
    """Return the name of a check.

    Raises
    ------
    ConfigError
        If it is none that can stand in a path and in a comment's marker.
    """
    if not re.fullmatch(KEY, key, re.ASCII):
        raise ConfigError(f"key: {key[:80]!r} is no name; use up to 64 letters, digits, dots, dashes and underscores")
    return key

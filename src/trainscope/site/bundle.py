"""The compact record of one run: all that its page shows, small enough to keep for years.

A record is made once, from the points and the judgement of a run; pages, feeds and pictures are made from
records alone, so a site can be rebuilt when the logs are gone. On disk it is JSON inside one function call,
``tsRun(...);``, because a page opened from a file may run a script beside it but may not read a file.

It is not :mod:`trainscope.store.bundle`, the file that later runs are compared with: that one holds every
point, this one holds what an eye can see of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from trainscope.core.errors import ReadError
from trainscope.replay.config import ReplayConfig
from trainscope.report.case_document import Status
from trainscope.report.document import Part, RunEntry, Verdict
from trainscope.site.record_parts import About as About
from trainscope.site.record_parts import Curve as Curve
from trainscope.site.record_parts import Rows as Rows
from trainscope.site.record_parts import Weights as Weights

VERSION = "1"
NAME = "record.js"
RECORDS = "records"
"""Folder beside a report in which the records of its runs lie, each in a folder of its id."""
MARKER = ".trainscope-site.json"
"""What a site was made from. Its presence says that a folder is a site of ours, which may be written over."""
MAX_BYTES = 512 * 1024
"""Greatest size of a record; what does not fit is left out, least telling first, and counted in `left_out`."""
MAX_READ = 8 << 20
"""Most bytes that are read: as JSON, a record takes many times its size of memory."""
HEAD, TAIL = "tsRun(", ");\n"


class Record(Part):
    """One run, as the site keeps it."""

    version: str = Field(pattern=r"^1(\.\d+)?$", default=VERSION)
    tool: str
    """Version of trainscope that made it."""
    entry: RunEntry
    verdict: Verdict
    about: About = About()
    status: Status = "unjudged"
    summary: str = ""
    """What became of the run, in a sentence or two."""
    main_incident: int | None = None
    """Which of the entry's incidents matters most, from 0."""
    unknown: list[str] = Field(default_factory=list)
    """What could not be told, and what would have to be recorded."""
    curves: list[Curve] = Field(default_factory=list)
    """The main curve first."""
    onset_loss: Curve | None = None
    """Every point of the training loss around the onset of the main incident, for what broken runs have in common."""
    evidence: list[Curve | None] = Field(default_factory=list)
    """One for each finding: the steps around it, every point where there are not too many."""
    layers: list[Rows] = Field(default_factory=list)
    shares: list[Rows] = Field(default_factory=list)
    weights: list[Weights] = Field(default_factory=list)
    replay: ReplayConfig | None = None
    """Content of ``replay_config.json``."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """What the record has no room for, and how many of it."""
    archived: bool = False
    """Reduced further, and drawn by the page that all archived runs share."""

    @property
    def id(self) -> str:
        """The run's id, fit for a folder's name."""
        return self.entry.id

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.main_incident is not None and not 0 <= self.main_incident < len(self.entry.incidents):
            raise ValueError("main_incident is none of its incidents")
        first, last = self.entry.steps.first, self.entry.steps.last
        if first is not None and last is not None and first > last:
            raise ValueError("its last step comes before its first")
        if any(not curve.step for curve in self.curves):
            raise ValueError("a curve has no step")
        entry = self.entry
        places = [entry.steps.first, entry.steps.last]
        places += [step for f in entry.findings for step in (f.start_step, f.end_step)]
        places += [step for i in entry.incidents for step in (i.onset, i.loss_step)]
        places += [step for e in entry.story for step in (e.step, e.end_step)]
        if any(place is not None and not -(2**63) <= place < 2**63 for place in places):
            raise ValueError("a step has more than 64 bits")
        return self


def to_text(record: Record) -> str:
    """Return the script that holds a record: ASCII, the same bytes for the same record."""
    data = record.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"version": record.version, **data}, separators=(",", ":"), allow_nan=False)
    # In a script element "</" would end it, in whatever string it stands.
    return HEAD + text.replace("<", "\\u003c") + TAIL


def from_text(text: str, source: str) -> Record:
    """Return the record in a script.

    Raises
    ------
    ReadError
        If it is no record, a damaged one, or one of a later version.
    """
    if not text.startswith(HEAD) or not text.endswith(TAIL):
        raise ReadError(source, "not a whole record of a run; build the site from the log again")
    try:
        data = json.loads(text[len(HEAD) : -len(TAIL)], parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ReadError(source, "a damaged record of a run; build the site from the log again") from None
    version = str(data.get("version", "")) if isinstance(data, dict) else ""
    if version.partition(".")[0] != VERSION:
        raise ReadError(source, f"a record of version {version[:20]!r}; this trainscope reads {VERSION}")
    try:
        record = Record.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "record"
        said = first["msg"].removeprefix("Value error, ").lower()
        raise ReadError(source, f"a damaged record of a run ({where}: {said})") from None
    if not re.fullmatch(r"[0-9a-f]{12}(-\d{1,6})?", record.id):
        raise ReadError(source, "a damaged record of a run (entry.id: is no run id)")
    return record


def read(path: Path) -> Record:
    """Return the record in a file.

    Raises
    ------
    ReadError
        If it cannot be read or is no record.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_READ + 1)
        if len(raw) > MAX_READ:
            raise ReadError(path, f"has more than {MAX_READ >> 20} MiB, and no record is so large")
        return from_text(raw.decode("ascii"), str(path))
    except OSError as error:
        raise ReadError(path, f"cannot be read ({error.strerror})") from None
    except ValueError:
        raise ReadError(path, "not a record of a run") from None


def _no_constant(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{name} is not JSON")


def is_record(path: Path) -> bool:
    """Tell whether a file is a record, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEAD) + 1) == b"tsRun({"
    except OSError:
        return False

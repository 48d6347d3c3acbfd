"""``replay_config.json``, schema version 1: what to train again, from where, and without which batches.

Fields are added (and the minor version raised), never renamed, removed or given another meaning within a major
version; whoever reads one ignores what they do not know. ``schemas/`` holds the JSON Schema made from these types by
:mod:`trainscope.replay.schema`. A training script needs one line of it: ``json.load(file)["skip_batches"]``.

History
    1.0  first version
    1.1  method
    1.2  rewind_to_batch
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainscope.core.errors import ReadError

SCHEMA_VERSION = "1.2"
KIND: Literal["trainscope.replay"] = "trainscope.replay"
FILE = "replay_config.json"

MOST_BYTES = 256 << 20
"""Largest file, in bytes: a plan has about 100 for each batch."""
LARGEST = 2**53 - 1
"""Largest number of a step or a batch: the largest that every reader of JSON has exactly."""

Count = Annotated[int, Field(ge=0, le=LARGEST, strict=True)]
Action = Literal["skip", "fix", "rerun"]
Method = Literal["drop_batch", "skip_update"]


class Part(BaseModel):
    """Base of every part: unknown fields are ignored, so that an old tool reads a newer file."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Batch(Part):
    """One batch that is left out."""

    index: Count
    """Its position: how many batches the loader gave before it, over the whole run and all epochs; without a loader,
    how many training forwards the script made before it."""
    step: Count | None = None
    """Optimizer step that trained on it."""
    hash: str | None = None
    """Hash of the step's batches, eight hex digits, where it was recorded."""
    is_bad: bool = False
    """Whether it looks bad by itself; the others are left out because of where they stand."""


class Source(Part):
    """The run that this plan is about."""

    id: str
    """Content hash, as in the report document."""
    name: str
    path: str
    """From the folder of this file on."""
    seed: Count | None = None
    """Of ``--seed``, where it was a smoke run with one."""
    steps: Count | None = None


class ReplayConfig(Part):
    """A plan to train again."""

    kind: Literal["trainscope.replay"] = KIND
    schema_version: str = Field(default=SCHEMA_VERSION, pattern=r"^1\.\d+$")
    checkpoint: str | None = None
    """Where to begin again; null is the start of training."""
    resume: bool = False
    """Whether to go on in the run of the checkpoint rather than in a new one."""
    skip_batches: list[Count] = Field(default_factory=list)
    """Positions of the batches to leave out, ascending; the same on every rank."""
    loader: Count = 0
    """Which loader they are of, in the order in which training first reads them."""
    method: Method = "drop_batch"
    """How they are left out: ``drop_batch`` draws them from the loader and drops them; ``skip_update``, for a script
    that makes its batches itself, trains on them and undoes the update. Since 1.1."""
    action: Action = "skip"
    """``skip`` these batches; ``fix`` the cause and skip nothing; ``rerun`` the step as it was, first of all."""
    cause: str | None = None
    """What broke the run, as the story says; null where nobody knows."""
    onset: Count | None = None
    """First step of the incident."""
    rewind_to_step: Count | None = None
    """Step of the checkpoint."""
    rewind_to_batch: Count | None = None
    """Position of the first batch after the checkpoint: ``start`` of SkippingDataLoader. Since 1.2."""
    rng_state: str | None = None
    """State of the random generators at that step, where it was recorded."""
    reason: str = ""
    """Why this plan, in a sentence."""
    notes: list[str] = Field(default_factory=list)
    """What else to know."""
    steps: list[Count] = Field(default_factory=list)
    """Optimizer steps that the skipped batches belonged to."""
    batches: list[Batch] = Field(default_factory=list)
    """The skipped batches with what is known of them, as far as the run recorded it."""
    source: Source | None = None
    commands: list[str] = Field(default_factory=list)
    """What to type next."""

    def to_json(self) -> str:
        """Return the file: ASCII JSON, two spaces deep, the same bytes for the same content."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def load(path: Path | str) -> ReplayConfig:
    """Read a file that :meth:`ReplayConfig.to_json` wrote, or one by hand with at least ``skip_batches``.

    Raises
    ------
    ReadError
        If there is none, or it is not one.
    """
    try:
        with Path(path).open("rb") as file:  # a pipe has no size, and a device no end
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ReadError(path, f"is larger than {MOST_BYTES >> 20} MiB, so it is no replay configuration")
        data = json.loads(raw.decode("utf-8-sig"))
    except FileNotFoundError:
        raise ReadError(path, "no such file; trainscope replay writes one") from None
    except IsADirectoryError:
        raise ReadError(path, f"is a folder; name the {FILE} in it") from None
    except OSError as error:
        raise ReadError(path, f"cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ReadError(path, "is not JSON; trainscope replay writes a replay configuration") from None
    if not isinstance(data, dict) or "skip_batches" not in data:
        raise ReadError(path, "is no replay configuration: it has no skip_batches; trainscope replay writes one")
    try:
        return ReplayConfig.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(place) for place in first["loc"])
        raise ReadError(path, f"{where}: {first['msg'].lower()}; write it anew with trainscope replay") from None


def is_replay_config(path: Path) -> bool:
    """Tell whether a file is one that we may write over."""
    try:
        return "kind" in load(path).model_fields_set
    except ReadError:
        return False

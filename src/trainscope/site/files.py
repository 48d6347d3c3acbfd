"""The folder of a site: what is written, whole or not at all and only where it changed, and what it remembers."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainscope.core.errors import ConfigError
from trainscope.core.files import PART, sweep
from trainscope.site.bundle import MARKER as MARKER
from trainscope.site.bundle import NAME
from trainscope.site.inputs import Input
from trainscope.store import stream

VERSION = "2"
PAGES_LIMIT = 1_000_000_000
"""Bytes that GitHub Pages publishes at most."""


@dataclass(slots=True)
class Memory:
    """What a site remembers from one build to the next."""

    inputs: dict[str, Input] = field(default_factory=dict)
    """By path: what each log was."""
    pages: dict[str, str] = field(default_factory=dict)
    """By run id: what its page depended on, as a hash."""
    whole: str = ""
    """All that the site was made from, as a hash."""
    made_by: str = ""
    """Versions of what the scripts of the site were made with."""


@dataclass(slots=True)
class SiteFolder:
    """Writes a site."""

    root: Path
    written: int = 0
    """Files that changed."""
    is_new: bool = False
    """Whether we made the folder."""

    def prepare(self) -> Memory:
        """Make the folder, and return what an earlier build remembers.

        Raises
        ------
        ConfigError
            If the folder holds something else than a site, or is a file.
        StoreError
            If it cannot be made.
        """
        scheme = self.root.parts[0] if self.root.parts else ""
        if scheme.endswith(":") and len(scheme) > 2 and not self.root.exists():  # C: is a drive
            raise ConfigError(f"--out {self.root}: a site is written to a folder of this machine; copy it afterwards")
        if self.root.exists() and not self.root.is_dir():
            raise ConfigError(f"--out {self.root}: is a file; name a folder")
        marker = self.root / MARKER
        if self.root.is_dir() and any(self.root.iterdir()) and not marker.is_file():
            raise ConfigError(f"--out {self.root}: holds other files and no site; name an empty or a new folder")
        self.is_new = not self.root.exists()
        with stream.writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        memory = _memory(marker) if marker.is_file() else Memory()
        sweep(self.root.rglob(f".*{PART}"))
        # From here on the folder is ours, even if the build is cut short.
        self.remember(memory)
        return memory

    def take_back(self) -> None:
        """Leave no folder behind that was made for a site which then held nothing."""
        if self.is_new and {entry.name for entry in self.root.iterdir()} == {MARKER}:
            (self.root / MARKER).unlink()
            self.root.rmdir()

    def remember(self, memory: Memory) -> None:
        """Write what the next build needs to know."""
        inputs = {name: {"digest": one.digest, "runs": list(one.runs)} for name, one in sorted(memory.inputs.items())}
        data = {
            "version": VERSION,
            "inputs": inputs,
            "pages": dict(sorted(memory.pages.items())),
            "whole": memory.whole,
            "made_by": memory.made_by,
        }
        self.write(MARKER, json.dumps(data, indent=1, allow_nan=False) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file, where it is not there already with the same bytes.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        data = content.encode() if isinstance(content, str) else content
        path = self.root / name
        if self.holds(name, data):
            return
        # Another build may be writing the same site.
        part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
        stream.place(path)
        with stream.whole(path, part):
            part.write_bytes(data)
        self.written += 1

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
        return (self.root / name).read_bytes()

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return (self.root / name).is_file()

    def holds(self, name: str, content: str | bytes) -> bool:
        """Tell whether a file is there with these bytes."""
        path = self.root / name
        data = content.encode() if isinstance(content, str) else content
        return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data

    def runs(self) -> Iterator[str]:
        """Yield the ids of the runs that the site holds, sorted."""
        home = self.root / "runs"
        if home.is_dir():
            yield from sorted(p.name for p in home.iterdir() if (p / NAME).is_file())

    def remove_run(self, run: str) -> None:
        """Delete the folder of a run, if another build was not faster.

        Raises
        ------
        StoreError
            If it cannot be deleted.
        """
        path = self.root / "runs" / run
        with stream.writing(path):
            try:
                shutil.rmtree(path)
            except FileNotFoundError:
                # Another build took away some of it at this moment: what is left is for both to take.
                shutil.rmtree(path, ignore_errors=True)

    def keep_only(self, run: str, names: Mapping[str, object]) -> None:
        """Delete the files of a run that its page no longer has."""
        for path in sorted((self.root / "runs" / run).iterdir()):
            if path.is_file() and path.name not in names and path.suffix != PART:
                path.unlink(missing_ok=True)

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(_size(path) for path in self.root.rglob("*") if path.suffix != PART)


def _memory(marker: Path) -> Memory:
    """Return what a marker says; one that is damaged or of another version says nothing."""
    try:
        data = json.loads(marker.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            return Memory()
        inputs = {str(k): Input(str(v["digest"]), tuple(map(str, v["runs"]))) for k, v in data["inputs"].items()}
        pages = {str(k): str(v) for k, v in data["pages"].items()}
        return Memory(inputs, pages, str(data["whole"]), str(data["made_by"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Memory()


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 for what is none or was just taken away by another build."""
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0

"""The parts that come from the registry of readers and their docstrings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from markdown_text import cell, plain, table

from trainscope.readers import READERS
from trainscope.readers.base import Reader

_FIELD = re.compile(r"^([A-Z]\w+(?: \w+)?)\s{2,}(\S.*)$")


def summary() -> str:
    """Return a table of formats, a row a reader."""
    rows = [
        (
            f"[`{reader.NAME}`](docs/readers.md#{reader.NAME})",
            cell(reader.DESCRIPTION),
            cell(fields(reader)["Recognised by"]),
        )
        for reader in READERS
    ]
    return table(("format", "what it is", "recognised by"), rows)


def pages() -> str:
    """Return one section a reader."""
    return "\n\n".join(_page(reader) for reader in READERS)


def fields(reader: Reader) -> dict[str, str]:
    """Return the fields of a reader's docstring: ``Recognised by``, ``Keeps`` and so on."""
    found: dict[str, str] = {}
    name = ""
    for line in (reader.__doc__ or "").splitlines():
        match = _FIELD.match(line)
        if match:
            name = match[1]
            found[name] = match[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def _page(reader: Reader) -> str:
    first = (reader.__doc__ or "").splitlines()[0]
    facts = [f"- **{name}**: {plain(text)}" for name, text in fields(reader).items()]
    text = "\n\n".join((f"## {reader.NAME}", plain(first), "\n".join(facts)))
    for other in READERS:
        # A docstring names the module; people know the format.
        module = getattr(other, "__name__", "").rpartition(".")[2]
        if module != reader.NAME:
            text = text.replace(f" `{module}` ", f" [`{other.NAME}`](#{other.NAME}) ")
    return text


PARTS: Mapping[str, Callable[[], str]] = {"formats": summary, "reader_pages": pages}

"""What the terminal in front of us can show."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from trainscope.core.run import Run
    from trainscope.report.document import Document

MIN_WIDTH, MAX_WIDTH = 40, 120


def can_draw(stream: TextIO | None) -> bool:
    """Tell whether `stream` is a terminal that knows more than ASCII; None is a closed one."""
    if stream is None:
        return False
    utf = (stream.encoding or "").lower().replace("-", "").startswith("utf")
    return stream.isatty() and utf and os.environ.get("TERM") != "dumb"


def wants_color(stream: TextIO | None, *, no_color: bool) -> bool:
    """Tell whether to colour: a terminal, and neither ``--no-color`` nor NO_COLOR (https://no-color.org)."""
    return can_draw(stream) and not no_color and not os.environ.get("NO_COLOR")


def render_for_terminal(document: Document, runs: Mapping[str, Run], stream: TextIO | None, *, no_color: bool) -> str:
    """Return the report as `stream` can show it: drawn and coloured, or plain lines; nothing that a CI obeys."""
    from trainscope.github.workflow_commands import disarmed
    from trainscope.report.terminal import render

    width = min(max(shutil.get_terminal_size((100, 24)).columns, MIN_WIDTH), MAX_WIDTH)
    color = wants_color(stream, no_color=no_color)
    text = render(document, runs, width=width, color=color, decorated=can_draw(stream))
    return "".join(disarmed(line) for line in text.splitlines(keepends=True))

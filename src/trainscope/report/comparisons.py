"""One compared metric in words, the same in every output."""

from __future__ import annotations

from trainscope.report.document import Comparison
from trainscope.report.text import figure, label, prose


def compared(line: Comparison) -> str:
    """Return ``metric: verdict (value, allowed low to high, step n)``."""
    about = []
    if line.value is not None:
        about.append(figure(line.value))
    if line.band is not None:
        about.append(f"allowed {figure(line.band[0])} to {figure(line.band[1])}")
    if line.step is not None:
        about.append(f"step {line.step}")
    return f"{label(line.metric)}: {prose(line.verdict)}" + (f" ({', '.join(about)})" if about else "")

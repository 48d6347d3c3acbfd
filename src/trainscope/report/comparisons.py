"""One compared metric in words, the same in every output."""

from __future__ import annotations

from trainscope.report.document import Comparison
from trainscope.report.text import figure, label, prose

QUIET = ("same", "within margin", "paired", "none beyond rounding")
"""How the verdicts begin that nobody needs to act on."""


def is_notable(line: Comparison) -> bool:
    """Tell whether what was compared differs, or could not be judged as sharply as it might."""
    return not line.verdict.startswith(QUIET)


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

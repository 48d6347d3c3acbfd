"""Turns of phrase in the lines of text logs: what stands before a counter, and lines that speak of two sides.

``Loss at step 100: 2.3`` says the name, the count and then the value. ``loss 2.3 acc 0.7 | val loss 2.5 acc 0.6`` says
the names of the training and then, under the same names, those of the evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainscope.core.metrics import tokens
from trainscope.readers.text_words import phase_in
from trainscope.readers.vocabulary import PHASES

PLACES = frozenset({"at", "after", "for", "in", "on"})
"""What stands between the name of a metric and the word that counts."""

GIVES = re.compile(r"\s*(?:[:=]|is:?|was:?|->|=>)\s*")
"""What may stand between the count and the value."""

GLUED = re.compile(r"(epoch|step|iter(?:ation)?|update)s?\b")
"""What ESPnet writes behind the number: ``12epoch``."""

ABBREVIATED = {"Ep.": "Epoch", "Up.": "Updates", "L.r.": "lr"}
"""With the point and these capitals (Marian), for "up" alone is no counter."""

_AT_COUNT = re.compile(
    rf"(.*\S)\s+(?:{'|'.join(sorted(PLACES))})\s+(?:(?:the|global|training)\s+)?\w+\s*[:#=]?\s*$", re.IGNORECASE
)
_ARTICLE = re.compile(r"^(?:the|an?|current)\s+", re.IGNORECASE)


def counted_phrase(lead: str) -> str:
    """Return what the text before a counter says is counted, "" where it says nothing."""
    found = _AT_COUNT.match(lead)
    if found is None:
        return ""
    if "ScoreIterationListener" in lead:
        return "loss"  # Deeplearning4j's score is what it minimises
    return _ARTICLE.sub("", found[1])


def second_side(parts: Sequence[str], names: Sequence[str]) -> tuple[str, int]:
    """Return the side of the second half of a line, and which number begins it; ("", 0) where it has no halves.

    Parameters
    ----------
    parts : sequence of str
        The text before each number, and that behind the last.
    names : sequence of str
        The name of each number, "" for one that is no value.
    """
    side, seen, sides = "", set[str](), list[str]()
    for lead, name in zip(parts, names, strict=False):
        own = next((PHASES[w] for w in tokens(name) if w in PHASES), "")
        side = own or phase_in(lead.replace(name, " ", 1) if name else lead) or side
        sides.append(side)
        if name in seen and not own and side in ("eval", "test") and "train" in sides:
            return side, sides.index(side)
        seen |= {name} - {""}
    return "", 0

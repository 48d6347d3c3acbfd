"""What a sentence calls a place in the run: detectors and causes speak of steps; some logs count epochs or rows."""

from __future__ import annotations

import re

from trainscope.report.text import well_formed

_BATCH = re.compile(r"\b(batch|batches) of steps? (?=\d)")
_PLACE = re.compile(r"\b([Ss])tep(s?) (?=\d)")
_ENDING = re.compile(r"(?<=\d) (s)tep(s?)\b")
_BACK = "at least 100 steps"
"""PaLM's distance, which is one of optimizer steps."""
_WORDS = {"epoch": "epoch", "row": "row"}


def in_words(text: str, x_axis: str) -> str:
    """Return a sentence about a run, well-formed, in the words of its axis.

    Parameters
    ----------
    text : str
    x_axis : str
        ``step``, ``epoch`` or ``row``.
    """
    text = well_formed(text)
    word = _WORDS.get(x_axis)
    if word is None:
        return text
    text = text.replace(f"{_BACK} before", "to a checkpoint from well before").replace(
        _BACK, "to a checkpoint from before it"
    )
    text = _BATCH.sub(lambda m: f"batches of {word}{'s' if m[0].endswith('steps ') else ''} ", text)
    text = _PLACE.sub(lambda m: f"{word.capitalize() if m[1] == 'S' else word}{m[2]} ", text)
    return _ENDING.sub(lambda m: f" {word}{m[2]}", text)

"""The names in the text around a number, and turns of phrase: counts before values, lines that speak of two sides.

``Loss at step 100: 2.3`` says the name, the count and then the value. ``loss 2.3 acc 0.7 | val loss 2.5 acc 0.6`` says
the names of the training and then, under the same names, those of the evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from trainscope.core.metrics import tokens
from trainscope.readers.text_words import MEASURES, counter_named, is_known, phase_in
from trainscope.readers.vocabulary import PHASES

PLACES = frozenset({"at", "after", "for", "in", "on"})
"""What stands between the name of a metric and the word that counts."""

GIVES = re.compile(r"\s*(?:[:=]|is:?|was:?|->|=>)\s*")
"""What may stand between the count and the value."""

GLUED = re.compile(r"(epoch|step|iter(?:ation)?|update)s?\b")
"""What ESPnet writes behind the number: ``12epoch``."""

ABBREVIATED = {"Ep.": "Epoch", "Up.": "Updates", "L.r.": "lr"}
"""With the point and these capitals (Marian), for "up" alone is no counter."""

_LONGEST_NAME = 60

_MOST_WORDS = 6

_OPENING = re.compile(r"(?:[\s\[({\"'`|>~]|\b(?:tensor|array|np\.float\d+|float\d*|Tensor|DeviceArray)\()+$")

_DELIMITER = re.compile(r"[,;|\t{}\[\]()<>*\"'`]|\s{2,}|\.\s|(?:^|\s)[-\u2013\u2014]+\s|[:=]\s*|/(?=\w+$)(?<=\d/)|\x00")

_TRAILING_UNIT = re.compile(r"^(.*\S)\s*[(\[]\s*([\w%/. ]{1,12})\s*[)\]]$")

_SUFFIX = re.compile(r"^\s*(%?\s*[A-Za-z%][\w %/.]{0,24}?)\s*(?:[,;|\])\t\n]|$|\s-\s)")

_NAME = re.compile(r"[^\W\d_][\w ./\-+%@&#]*|_[a-z]\w*")

_SOURCE_FILE = re.compile(r"\.(?:py|cc|cpp|cu|c|h|hpp|lua|go|rs|java|js|ipynb)$")

UNIT = re.compile(r"(?:/?[%a-zA-Z\u00b5][a-zA-Z%]{0,10}(?:/[a-zA-Z]+)*(?=[^\w]|$)| (?:m?s|secs?|seconds) (?=[A-Z]))")

_AT_COUNT = re.compile(
    rf"(.*\S)\s+(?:{'|'.join(sorted(PLACES))})\s+(?:(?:the|global|training)\s+)?\w+\s*[:#=]?\s*$", re.IGNORECASE
)
_REACHED = re.compile(r"[\"'`]?\s+reached$")
"""What Lightning's checkpoints say: ``'val_loss' reached 0.31``."""
_OTHER_COUNTS = frozenset({"patience", "fold", "seed", "trial", "gpu", "rank", "worker", "stopping"})
_RECORDS = frozenset({"best", "decreased", "improved", "increased"})
_ARTICLE = re.compile(r"^(?:the|an?|current)\s+", re.IGNORECASE)


def name_before(lead: str, *, inside: bool) -> tuple[str, bool]:
    """Return what the text before a number calls it, and whether a separator stands between."""
    text = lead
    if inside:
        unit = UNIT.match(text)
        if unit is not None:
            text = text[unit.end() :]
            text = "\t" + text
    stripped = _REACHED.sub("", _OPENING.sub("", text))
    barred = "|" in text[len(stripped) :]
    if stripped.endswith(("->", "=>")):
        stripped = stripped[:-2].rstrip() + ":"
    if stripped.endswith((":", "=")):
        return cleaned(last_phrase(stripped[:-1].rstrip(" \"'`:="))), True
    if barred:
        if not stripped.lstrip().startswith("|") and "|" not in stripped and inside:
            return "", False
        return cleaned(last_phrase(stripped.rstrip())), True
    if not stripped or _DELIMITER.match(stripped[-1]):
        return "", False
    return longest_known(cleaned(last_phrase(stripped)))


def last_phrase(text: str) -> str:
    """Return the last phrase of a text, with its unit in brackets."""
    unit = _TRAILING_UNIT.match(text)
    base, tail = (unit[1], f"({unit[2].strip()})") if unit is not None else (text, "")
    pieces = _DELIMITER.split(base)
    name = pieces[-1].strip()
    if not name:
        return ""
    prefix = pieces[-2].split()[-1:] if len(pieces) > 1 and pieces[-2].split() else []
    if prefix and prefix[0].lower() in PHASES and base.endswith((":" + name, ": " + name, "=" + name)):
        name = f"{PHASES[prefix[0].lower()]}/{name}"
    return name + tail


@lru_cache(maxsize=65536)
def cleaned(name: str) -> str:
    """Return a name without ornaments, "" where it cannot be one."""
    if name in ABBREVIATED:
        return ABBREVIATED[name]
    base, bracket, unit = name.partition("(")
    base = base.strip(" -*#.:>+\u2192\u2022&@!?/\\")
    words = base.split()
    if len(words) > _MOST_WORDS:
        base = " ".join(words[-3:])
    if len(words) > 1 and words[-1].lower() in ("value", "is", "was", "=", "so far"):
        base = " ".join(words[:-1])
    if not base or len(base) > _LONGEST_NAME or not _NAME.fullmatch(base) or _SOURCE_FILE.search(base):
        return ""
    return base + bracket + unit


def longest_known(name: str) -> tuple[str, bool]:
    """Return the longest end of a phrase that names a metric or a counter."""
    words = name.split()
    if (
        words
        and counter_named(words[-1]) is not None
        and (len(words) == 1 or words[-2].lower() in PLACES or counter_named(" ".join(words[-2:])) is None)
    ):
        return words[-1], False
    for first in range(max(0, len(words) - 4), len(words)):
        phrase = " ".join(words[first:])
        if counter_named(phrase) is not None or is_known(phrase) or (tokens(phrase) or ("",))[-1] in MEASURES:
            return phrase, False
    return "", False


def name_behind(lead: str, follow: str, *, first: bool) -> str:
    """Return what the text behind a number calls it, where only a delimiter stands before."""
    if not (first and not lead.strip()) and not lead.rstrip().endswith(("|", ",", ";")) and "\t" not in lead:
        return ""
    found = _SUFFIX.match(follow)
    if found is None:
        return ""
    name = found[1].strip()
    if name.lower() in ("ms", "s", "sec", "secs", "seconds", "msec"):
        return "step_time(ms)" if name.lower().startswith("ms") else "time(s)"
    return cleaned(name.lstrip("% ")) if len(name.strip("% ")) > 1 else ""


def counts_no_step(name: str) -> bool:
    """Tell whether the n of n/N is of something else than the run: ``patience=2/10``, ``fold 1/5``."""
    return not _OTHER_COUNTS.isdisjoint(tokens(name))


def is_of_before(name: str) -> bool:
    """Tell whether a number is a record, or the one that was just broken: ``loss decreased (0.3 --> 0.2)``."""
    return not _RECORDS.isdisjoint(tokens(name))


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

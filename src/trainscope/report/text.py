"""What every output does with text and numbers that came from a log, where every name is hostile."""

from __future__ import annotations

import math
import unicodedata

_JOINERS = frozenset("\u200c\u200d")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def well_formed(text: str) -> str:
    """Return `text` with lone surrogates replaced, so that it can be encoded as UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(text: str) -> str:
    """Return `text` on one line with everything invisible spelled out.

    Control, format and unassigned characters become backslash escapes: an escape sequence in a run's
    name must not colour a terminal, and a right-to-left override must not turn a line around. The two
    joiners that scripts and emoji need stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(c) for c in well_formed(text))


def _spelled(char: str) -> str:
    if char in _JOINERS:
        return char
    # Zs other than the plain space (no-break, ideographic) is harmless; Zl and Zp break lines.
    if unicodedata.category(char) in {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}:
        if char in _SHORT:
            return _SHORT[char]
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char


def shorten(text: str, limit: int) -> str:
    """Return `text` with its middle cut out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def label(text: str, limit: int = 120) -> str:
    """Return a name fit to be shown: printable, never empty, never endless."""
    return shorten(printable(text), limit) if text.strip() else f'"{printable(text)}"'


def prose(text: str, limit: int = 800) -> str:
    """Return a sentence fit to be shown: a name of a thousand letters in it must not fill the page."""
    return shorten(printable(text), limit)


def figure(value: float | str | None) -> str:
    """Return a number with four significant digits: ``2.41``, ``9.9e+07``, ``nan``; ``-`` for none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e15):
        whole = int(value)
        return str(whole) if abs(whole) < 1e7 else f"{value:.4g}"
    return f"{value:.4g}"


def plural(count: int, word: str, many: str = "") -> str:
    """Return ``"1 finding"``, ``"2 findings"``; `many` where an s is not enough."""
    return f"{count} {word}" if count == 1 else f"{count} {many or f'{word}s'}"

"""Values of settings: which texts can be paths, and what of a value JSON can hold."""

from __future__ import annotations


def encodes(text: str) -> bool:
    """Tell whether `text` can be written as UTF-8: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: object) -> object:
    """Return `value` fit for JSON; a class or an object becomes its dotted path."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"

"""Reads ``TRAINSCOPE_<FIELD>`` variables as the type their field has, so that ``false`` means False."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated

from trainscope.core.errors import ConfigError

PREFIX = "TRAINSCOPE_"
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})
NULL_WORDS = frozenset({"", "none", "null"})


def fields_from(environ: Mapping[str, str], known: Iterable[str], *, prefix: str = PREFIX) -> dict[str, str]:
    """Return field name to raw text for every variable that names one of `known`.

    Raises
    ------
    ConfigError
        If a variable is one slip away from a field: ignoring it would record with a setting nobody wanted.
        Other variables with the prefix belong to other parts of the tool and are left alone.
    """
    fields = set(known)
    found = {}
    for variable in sorted(environ):
        if not variable.startswith(prefix):
            continue
        name = variable[len(prefix) :].lower()
        if name in fields:
            found[name] = environ[variable]
        elif near := difflib.get_close_matches(name, sorted(fields), n=1, cutoff=0.85):
            raise ConfigError(f"environment: unknown variable {variable!r}; did you mean {prefix + near[0].upper()!r}?")
    return found


def kinds_of(annotation: object) -> frozenset[str]:
    """Return the plain types that a field's annotation allows, as `parse` names them."""
    if annotation is type(None):
        return frozenset({"null"})
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return kinds_of(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return frozenset().union(*(kinds_of(part) for part in typing.get_args(annotation)))
    return frozenset({getattr(origin or annotation, "__name__", "")})


def parse(variable: str, text: str, kinds: frozenset[str]) -> object:
    """Return `text` as one of `kinds` (``bool``, ``int``, ``str``, ``list``, ``dict``, ``null``).

    Raises
    ------
    ConfigError
        If it is none of them; names the variable and what it may be.
    """
    word = text.strip().lower()
    if "null" in kinds and word in NULL_WORDS:
        return None
    if "int" in kinds:
        try:
            return int(text)
        except ValueError:
            pass
    if "bool" in kinds and word in TRUE_WORDS | FALSE_WORDS:
        return word in TRUE_WORDS
    structured = kinds & {"list", "dict"}
    if structured and (text.lstrip()[:1] in ("[", "{") or "str" not in kinds):
        return _structured(variable, text, structured)
    if "str" in kinds:
        return text
    allowed = {"bool": "true or false", "int": "a whole number", "null": "none"}
    expected = ", ".join(allowed[k] for k in sorted(kinds & allowed.keys()))
    raise ConfigError(f"environment: {variable} = {text[:60]!r}: expected {expected}")


def _structured(variable: str, text: str, kinds: frozenset[str]) -> object:
    if text.lstrip()[:1] not in ("[", "{"):
        if "list" in kinds:
            return [part.strip() for part in text.split(",") if part.strip()]
        raise ConfigError(f"environment: {variable} = {text[:60]!r}: expected {{...}}")
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(
            f"environment: {variable} = {text[:60]!r}: not valid JSON or YAML; quote it as in the shell"
        ) from None

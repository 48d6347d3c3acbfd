"""From the text of a configuration file to flat settings, with nothing in them that anyone should not see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainscope.core.metrics import tokens
from trainscope.core.run import Scalar

MAX_NODES = 5_000
MAX_DEPTH = 12
MAX_LIST = 16
MAX_TEXT = 400
MASKED = "***"
_SECRET = frozenset({"password", "passwd", "pwd", "secret", "token", "credential", "credentials", "apikey"})
_KEY_KINDS = frozenset({"api", "access", "private", "secret", "auth", "ssh", "encryption", "account"})
_LOOKS_SECRET = re.compile(
    r"^(?:hf_\w{16}|sk-[\w-]{16}|gh[po]_\w{16}|github_pat_\w{16}|glpat-\w{8}|xox[abp]-|AKIA\w{12}|AIza\w{16})"
    r"|://[^/\s:@]*:[^/\s@]+@"
)
_EXPONENT = re.compile(r"[+-]?\d+(?:\.\d*)?[eE][+-]?\d{1,3}")
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)


def masked(config: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return a configuration with the values of what looks like a password, token or key replaced."""
    return {key: MASKED if is_secret(key, value) else value for key, value in config.items()}


def is_secret(key: str, value: Scalar) -> bool:
    """Tell whether a setting is one by its name, or by what it looks like."""
    if not isinstance(value, str) or not value:
        return False
    words = tokens(key)
    named = words[-1:] and (words[-1] in _SECRET or (words[-1] == "key" and set(words[-2:-1]) & _KEY_KINDS))
    return bool(named) or _LOOKS_SECRET.search(value) is not None


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what YAML says, as plain data; a Python object in it becomes nothing.

    Raises
    ------
    ValueError
        If it is not YAML.
    """
    import yaml

    class Plain(yaml.SafeLoader):
        """A safe loader that skips the tags it does not know, instead of refusing the file."""

    def skip(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:  # noqa: ANN401
        if suffix.endswith("python/tuple") and isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node)
        return _Unknown()

    Plain.add_multi_constructor("", skip)
    try:
        return yaml.load(text, Loader=Plain)  # a subclass of SafeLoader that constructs nothing more
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ValueError(str(error)) from None


class _Unknown:
    """Stands for a value that was not constructed."""


def flat(value: Mapping[Any, Any]) -> tuple[dict[str, Scalar], int]:
    """Return nested settings under names joined with dots, and how many values were left out.

    Lists of numbers and words become text. YAML aliases can make a small file endless: after ``MAX_NODES``
    values or ``MAX_DEPTH`` levels the rest is left out.
    """
    found: dict[str, Scalar] = {}
    left_out = nodes = 0
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    while stack:
        name, item, depth = stack.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            left_out += 1
        elif isinstance(item, dict):
            inside = [(f"{name}.{key}" if name else str(key), under, depth + 1) for key, under in item.items()]
            stack += reversed(inside[:MAX_NODES])
        elif (plain := _scalar(item)) is not _Unknown:
            found[name] = plain  # type: ignore[assignment]
        else:
            left_out += 1
        if nodes > MAX_NODES:
            return found, left_out + len(stack)
    return found, left_out


def _scalar(item: object) -> object:
    """Return a setting as one value, ``_Unknown`` where it is none."""
    if isinstance(item, str):
        return float(item) if _EXPONENT.fullmatch(item) else item[:MAX_TEXT]
    if item is None or isinstance(item, (bool, int, float)):
        return item
    if isinstance(item, (list, tuple)) and len(item) <= MAX_LIST:
        # A list in a list is none; nobody looks into it, because aliases can make it endless.
        parts = [_Unknown if isinstance(part, (list, tuple)) else _scalar(part) for part in item]
        if not any(part is _Unknown or (isinstance(part, str) and part.startswith("[")) for part in parts):
            return f"[{', '.join(map(str, parts))}]"[:MAX_TEXT]
    if type(item).__module__ == "datetime":
        return str(item)
    return _Unknown


def of_tracker(found: dict[str, Scalar]) -> dict[str, Scalar]:
    """Undo the envelope that Weights & Biases puts around settings; others stay as they are."""
    if not any(key.startswith(("wandb_version", "_wandb.")) for key in found):
        return found
    return {
        key.replace(".value.", ".", 1).removesuffix(".value"): value
        for key, value in found.items()
        if not (key.startswith(("_wandb.", "wandb_version")) or key.endswith(".desc"))
    }


def options(args: object) -> Iterator[tuple[str, Scalar]]:
    """Yield the options of a command line: ``--lr 0.1``, ``--lr=0.1``, and switches without a value."""
    parts = [str(part) for part in args[:MAX_NODES]] if isinstance(args, list) else []
    for part, following in zip(parts, [*parts[1:], ""], strict=False):
        match = _OPTION.fullmatch(part)
        if match is None or part.lstrip("-")[:1].isdigit():
            continue
        given = match[2]
        if given is None:
            given = "true" if following.startswith("--") or not following else following
        yield match[1], _typed(given[:MAX_TEXT])


def _typed(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)

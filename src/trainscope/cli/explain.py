"""``trainscope explain``: print all about one detector or comparison."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import write_stdout

if TYPE_CHECKING:
    from trainscope.detectors.base import Detector
    from trainscope.diagnosis.base import Comparer

WIDTH = 120
"""Of the lines of a detector's page."""


@click.command(short_help="Print all about one detector.")
@click.argument("detector", metavar="ID")
def explain(detector: str) -> ExitCode:
    """Print all about one detector: what it finds, how, where and how often it errs, and its parameters."""
    from trainscope.detectors import by_id
    from trainscope.detectors.measured import measured
    from trainscope.diagnosis.compare import COMPARERS

    found = next((c for c in COMPARERS if c.id == detector), None) or by_id(detector)
    figures = "".join(f"    {line}\n" for said in measured(found.id) for line in textwrap.wrap(said, WIDTH - 4))
    figures = f"Measured\n{figures}\n" if figures else ""
    written = write_stdout(f"{found.page.strip()}\n\n{figures}{_settings(found)}")
    return ExitCode.PASS if written else ExitCode.CANNOT_JUDGE


def _settings(detector: Detector[Any] | Comparer[Any]) -> str:
    """Return the parameters as a settings table ready to paste."""
    meanings = parameter_meanings(type(detector.params))
    lines = ["Settings", f"    [detectors.{detector.id}]", "    enabled = true"]
    for name, default in detector.parameters().items():
        meaning = meanings.get(name)
        lines += [f"    # {line}" for line in (meaning or "").splitlines()]
        lines.append(f"    {name} = {toml_value(default)}")
    return "\n".join(lines) + "\n"


def parameter_meanings(described: type) -> dict[str, str]:
    """Return the string under each field of a dataclass or member of an enumeration, which Python throws away."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(described)))
    except (OSError, SyntaxError):
        return {}
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    meanings: dict[str, str] = {}
    for field, after in pairwise(body):
        if not isinstance(field, (ast.AnnAssign, ast.Assign)):
            continue
        target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
        if (
            isinstance(target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            meanings[target.id] = inspect.cleandoc(after.value.value)
    return meanings


def toml_value(value: object) -> str:
    """Return a default as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(toml_value(v) for v in value)}]"
    return str(value)

"""The parts that come from running the code: help texts, a real report, tables of what the code defines."""

from __future__ import annotations

import contextlib
import importlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin

from click.testing import CliRunner
from markdown_text import cell, table

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.explain import parameter_meanings, toml_value
from trainscope.cli.main import COMMANDS, cli
from trainscope.core.config import TrainScopeConfig
from trainscope.core.metrics import CANONICAL, Kind
from trainscope.core.profiles import PROFILES
from trainscope.core.settings import Settings
from trainscope.core.vocabulary import REWARDS, SIDED, SPELLINGS
from trainscope.report.pipeline import analyze
from trainscope.report.terminal import render

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
SHOWN = ("examples/logs/healthy.jsonl", "examples/logs/grad_explosion.jsonl")
"""The logs of README's report."""
KINDS = {dict: "tables", list: "list of strings", int: "integer", float: "number"}
"""Types of settings, as people call them."""
DOCUMENTED = "examples/logs/overfitting.metrics.csv"
"""The log whose JSON document is shown."""


@contextlib.contextmanager
def _in_root() -> Iterator[None]:
    """Work in the repository's root: reports name logs as they were given."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        yield
    finally:
        os.chdir(before)


def report() -> str:
    """Return what a terminal of 100 columns shows, after the command that shows it."""
    with _in_root():
        analysis = analyze(SHOWN, Settings())
    text = render(analysis.document, analysis.runs, width=WIDTH, decorated=True)
    return f"```console\n$ trainscope analyze {' '.join(SHOWN)}\n{text.rstrip()}\n```"


def document() -> str:
    """Return a whole JSON document."""
    with _in_root():
        text = analyze([DOCUMENTED], Settings()).document.to_json()
    return f"`trainscope analyze {DOCUMENTED} --output json` prints:\n\n```json\n{text.rstrip()}\n```"


def helps() -> str:
    """Return the help of every command, as a terminal of 100 columns shows it."""
    runner = CliRunner(env={"COLUMNS": str(WIDTH)})
    parts = []
    for name in ("", *COMMANDS):
        called = f"trainscope {name}".strip()
        text = runner.invoke(cli, [*name.split(), "--help"], prog_name="trainscope").output
        parts.append(f"## {called}\n\n```console\n$ {called} --help\n{text.rstrip()}\n```")
    return "\n\n".join(parts)


def exit_codes() -> str:
    """Return the table of exit codes."""
    meanings = parameter_meanings(ExitCode)
    rows = [(f"`{c.value}`", c.name.lower().replace("_", " "), cell(meanings[c.name])) for c in ExitCode]
    return table(("code", "name", "when"), rows)


def settings_keys() -> str:
    """Return the table of top-level settings."""
    meanings = parameter_meanings(Settings)
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "unset" if default is None else f"`{toml_value(default) if default != {} else '{}'}`"
        rows.append((f"`{name}`", _kind(field.annotation), shown, cell(meanings[name])))
    return table(("key", "type", "default", "meaning"), rows)


def recorder_settings() -> str:
    """Return the table of the recorder's settings."""
    meanings = parameter_meanings(TrainScopeConfig)
    defaults = TrainScopeConfig().to_dict()
    rows = [(f"`{name}`", f"`{defaults[name]!r}`", cell(meanings[name])) for name in TrainScopeConfig.model_fields]
    return table(("field", "default", "meaning"), rows)


def recorder_profiles() -> str:
    """Return the table of the recorder's profiles and what each sets."""
    rows = [
        (f"`{name}`", ", ".join(f"`{field}={value!r}`" for field, value in settings.items()))
        for name, settings in PROFILES.items()
        if settings
    ]
    return table(("profile", "sets"), rows)


def _kind(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{word}"`' for word in get_args(annotation))
    if get_origin(annotation) is UnionType:
        return " or ".join(_kind(one) for one in get_args(annotation) if one is not NoneType)
    return KINDS[get_origin(annotation) or annotation]


def metric_names() -> str:
    """Return the table of canonical metric names."""
    sided = {name: [s for s, to in SIDED.items() if name.endswith(f"/{to}")] for name in CANONICAL}
    rows = []
    for name, metric in CANONICAL.items():
        spellings = SPELLINGS.get(name) or sided[name] or (sorted(REWARDS) if name == "train/reward" else ())
        said = ", ".join(f"`{s.replace(' ', '_')}`" for s in spellings) or "see below"
        rows.append((f"`{name}`", metric.kind.value, cell(metric.unit), cell(metric.meaning), said))
    return table(("name", "kind", "unit", "meaning", "spellings that claim it"), rows)


def metric_kinds() -> str:
    """Return the table of kinds."""
    meanings = parameter_meanings(Kind)
    rows = [(f"`{kind.value}`", cell(meanings[kind.name])) for kind in Kind]
    return table(("kind", "what it is"), rows)


def rooms() -> str:
    """Return the table of packages, from the ground up, with the floors of the import contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = []
    for floor, layer in enumerate(reversed(layers)):
        for room in sorted(name.strip() for name in layer.split("|")):
            said = importlib.import_module(f"trainscope.{room}").__doc__ or ""
            modules = sorted(p.stem for p in (ROOT / "src" / "trainscope" / room).glob("*.py") if p.stem != "__init__")
            rows.append((str(floor), f"`{room}/`", cell(said.partition("\n")[0]), ", ".join(f"`{m}`" for m in modules)))
    return table(("floor", "room", "what it is for", "modules"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "report": report,
    "document": document,
    "help": helps,
    "exit_codes": exit_codes,
    "settings_keys": settings_keys,
    "recorder_settings": recorder_settings,
    "recorder_profiles": recorder_profiles,
    "metric_names": metric_names,
    "metric_kinds": metric_kinds,
    "rooms": rooms,
}

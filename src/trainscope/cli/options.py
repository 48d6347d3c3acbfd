"""Options that several commands share, and how they change the settings of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trainscope.core.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
FAIL_ON = ("info", "warning", "error", "never")
LARGEST = 2**53 - 1
"""Largest number of steps, and seed, of a recording: a plan takes no larger one."""


def judging_options(command: F) -> F:
    """Add the options that say how to read, what to judge and what fails."""
    for decorate in reversed(
        (
            click.option("--format", "format_", metavar="NAME", help="Reader to use; default: by content."),
            click.option(
                "--fail-on",
                type=click.Choice(FAIL_ON),
                help="Least severity that fails the gate.  [default: warning]",
            ),
            click.option(
                "--config",
                "config",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Settings file; default: trainscope.toml or pyproject.toml, found from here upwards.",
            ),
            click.option(
                "--select",
                multiple=True,
                metavar="DETECTOR",
                help="Run only these detectors (repeat, or separate with commas).",
            ),
            click.option("--ignore", multiple=True, metavar="DETECTOR", help="Leave these detectors out."),
            click.option("--no-color", is_flag=True, help="No colours; so does the variable NO_COLOR."),
        )
    ):
        command = decorate(command)
    return command


def settings_for(
    config: Path | None,
    fail_on: str | None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Settings:
    """Return the file's settings with what the command line says put over them.

    Raises
    ------
    ConfigError
        If the settings file is wrong.
    """
    from trainscope.core.errors import ConfigError
    from trainscope.core.settings import load_settings, settings_file
    from trainscope.detectors import configure
    from trainscope.diagnosis.compare import IDS

    changes: dict[str, object] = {}
    if fail_on is not None:
        changes["fail_on"] = fail_on
    chosen = {"select": split(select), "ignore": split(ignore)}
    changes |= {key: given for key, given in chosen.items() if given}
    settings = load_settings(config)
    try:
        configure(settings, others=IDS)
    except ConfigError as error:
        raise ConfigError(f"{_shown(settings_file(config))}: {error}") from None
    return settings.model_copy(update=changes)


def _shown(file: Path | None) -> str:
    """Return a settings file as the errors of its parser name it: short, where it lies in this folder."""
    if file is None:
        return "settings"
    return file.name if file.is_absolute() and file.parent == Path.cwd().resolve() else str(file)


def split(values: Iterable[str]) -> list[str]:
    """Return the parts of repeated and comma-separated options."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]

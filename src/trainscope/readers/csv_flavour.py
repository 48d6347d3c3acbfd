"""Which tool wrote a delimited text file, told by its column names."""

from __future__ import annotations

from enum import StrEnum

from trainscope.readers.csv_layout import Layout, find_layout
from trainscope.readers.source import Head

CHART_MARK = " - "
"""Between run and metric in the header of a W&B chart export."""


class Flavour(StrEnum):
    """What the columns say."""

    PLAIN = "plain"
    WANDB_HISTORY = "wandb_history"
    """One run's history: ``_step`` and its companions."""
    WANDB_CHART = "wandb_chart"
    """One column per run, with ``__MIN`` and ``__MAX`` twins."""
    WANDB_RUNS = "wandb_runs"
    """One row per run: no history."""
    LIGHTNING = "lightning"


def of(head: Head) -> Flavour | None:
    """Return the flavour of a delimited text file, None if it is none."""
    if head.folder is not None or not head.text.strip():
        return None
    layout = find_layout(head)
    return None if layout is None else by_columns(layout, head)


def by_columns(layout: Layout, head: Head) -> Flavour:
    """Return the flavour that the column names show."""
    names = set(layout.names)
    if {"_step", "_runtime"} <= names or {"_step", "_timestamp"} <= names:
        return Flavour.WANDB_HISTORY
    if {"Name", "State"} <= names and names & {"Created", "Runtime", "User", "Sweep"}:
        return Flavour.WANDB_RUNS
    if any(name.endswith(("__MIN", "__MAX")) for name in names):
        return Flavour.WANDB_CHART
    if {"epoch", "step"} <= names and (head.name == "metrics.csv" or _has_twins(names)):
        return Flavour.LIGHTNING
    return Flavour.PLAIN


def _has_twins(names: set[str]) -> bool:
    """Lightning's ``on_step=True, on_epoch=True`` logs ``x_step`` and ``x_epoch``."""
    return any(name.endswith("_step") and f"{name[:-5]}_epoch" in names for name in names)

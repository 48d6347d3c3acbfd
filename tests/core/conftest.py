"""scipy, which some formulas are held against."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def stats() -> ModuleType:
    """Return scipy's statistics, which take a second to import: at the first test that needs them."""
    return importlib.import_module("scipy.stats")

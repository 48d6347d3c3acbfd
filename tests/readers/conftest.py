"""A small log that several tests read, and where the shared corpus lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip(f"the shared corpus is not beside the checkout ({SHARED.name}/ is missing)")
    return SHARED


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Forty training rows and four evaluations."""
    out: list[dict[str, Any]] = []
    for i in range(1, 41):
        out.append({"step": i * 5, "loss": 3.0 / i + 0.1, "lr": 1e-4 * i, "grad_norm": 0.3 + i % 7})
        if i % 10 == 0:
            out.append({"step": i * 5, "eval_loss": 3.1 / i + 0.2})
    return out

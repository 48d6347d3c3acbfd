"""Puts the recorded runs that the tests of the detectors make within reach."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "detectors"))

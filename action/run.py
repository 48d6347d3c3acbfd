"""Runs the trainscope of this checkout, whatever else is installed: ``python -I run.py github check``."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from trainscope.__main__ import main

main()

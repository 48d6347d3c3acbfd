"""Ends the script once the wanted steps are done, however it holds on."""

from __future__ import annotations

import os
import sys
import threading
from typing import NoReturn

SWALLOWED = 3
"""Times a bare ``except:`` may catch the end of the run before the process is left for good."""


class SmokeDone(SystemExit):
    """The wanted number of steps is done: ends the script with code 0."""


def leave(raised: int) -> NoReturn:
    """End the script; `raised` is how often that has been tried, this time included."""
    if raised > SWALLOWED or threading.current_thread() is not threading.main_thread():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    raise SmokeDone(0)

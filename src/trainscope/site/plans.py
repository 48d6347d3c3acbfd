"""How to train a run again, as its page offers it."""

from __future__ import annotations

from pathlib import Path

from trainscope.core import facts
from trainscope.diagnosis.case import Case
from trainscope.replay.checkpoints import checkpoints, rng_states
from trainscope.replay.config import ReplayConfig, Source
from trainscope.replay.plan import Places, plan
from trainscope.report.document import RunEntry

"""One module a format: what a training run wrote, to :class:`~trainscope.core.run.Run`.

Adding a reader: one module, one line in :mod:`trainscope.readers.registry`.
"""

from trainscope.readers.base import Reader
from trainscope.readers.find import find_logs
from trainscope.readers.registry import READERS, read_runs, reader_for

__all__ = ["READERS", "Reader", "find_logs", "read_runs", "reader_for"]

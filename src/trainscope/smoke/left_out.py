"""Where a replay tells the recorder which batches to leave out; read by both sides, so it imports nothing."""

from __future__ import annotations

LEFT_OUT = "left_out.json"
"""In the folder of the records: a list of positions. In a file, because a variable of the environment takes 128 KiB,
which some 20,000 positions fill."""

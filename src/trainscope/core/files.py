"""Names of files that several rooms know."""

from __future__ import annotations

PRINTED = "output.log"
"""What a script printed under ``trainscope smoke``, beside the recording of the same training."""

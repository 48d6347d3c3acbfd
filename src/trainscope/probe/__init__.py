"""The instrument that sits inside a training process; the standard library and torch only.

It must also work where the rest of the package is not installed, so it imports nothing else of ours.
"""

from .boundary import Boundary
from .instrument import Probe
from .measurement import Measurement
from .options import Options
from .reading import Reading

__all__ = ["Boundary", "Measurement", "Options", "Probe", "Reading"]

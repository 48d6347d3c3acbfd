"""The most memory the process has held."""

from __future__ import annotations

import sys

import torch

from trainscope.probe import process

_most = [0.0, 0.0]
"""Most mapped and most own memory of this process so far, in MiB."""


def peak_mb() -> float | None:
    """Return the highest resident memory so far in MiB; None where the system does not tell.

    On Linux without what is mapped (files, shared memory): how much of the libraries and of a mapped data set is
    resident is up to the page cache, and the same script had 88 MiB more of it on its second start. The system keeps
    only the peak of the sum, so this is a lower bound: the sum's less the most that was mapped, or what was seen.
    """
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return peak / 2**20
    resident, mapped = process.resident_and_mapped_mb()
    _most[0] = max(_most[0], mapped)
    _most[1] = max(_most[1], resident - mapped, peak / 2**10 - _most[0])
    return _most[1]


def cuda_peak_mb() -> float | None:
    """Return the highest memory held for tensors on all CUDA devices in MiB, None without CUDA."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return None
    return sum(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count())) / 2**20

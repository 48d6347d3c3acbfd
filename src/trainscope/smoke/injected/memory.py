"""The most memory the process has held."""

from __future__ import annotations

import sys

import torch


def peak_mb() -> float | None:
    """Return the highest resident memory so far in MiB; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def cuda_peak_mb() -> float | None:
    """Return the highest memory held for tensors on all CUDA devices in MiB, None without CUDA."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return None
    return sum(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count())) / 2**20

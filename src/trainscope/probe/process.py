"""What the process holds: memory, without waiting for a device."""

from __future__ import annotations

import os
import sys

import torch

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


_open: list[int] = []


def _status() -> int:
    """Return a file of /proc that stays open: opening it costs ten times as much as reading it."""
    if not _open or _open[0] != os.getpid():  # a forked worker must not read its parent's
        _open[:] = [os.getpid(), os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)]
    return _open[1]


def cpu_memory_mb() -> float | None:
    """Return resident memory of this process in MiB, None where the system does not tell."""
    try:
        return int(os.pread(_status(), 128, 0).split()[1]) * _PAGE / 2**20
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS has only the peak, in bytes
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def cuda_memory_mb() -> float | None:
    """Return memory that torch holds for tensors on all CUDA devices in MiB, None without CUDA."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    return sum(torch.cuda.memory_allocated(i) for i in range(torch.cuda.device_count())) / 2**20

"""The most memory the process has held."""

from __future__ import annotations

import os
import re
import sys

import torch

_open: list[int] = []
_FIELD = re.compile(rb"^(VmHWM|VmRSS|RssFile):\s+(\d+) kB", re.MULTILINE)
_most = [0.0, 0.0]
"""Most mapped files and most other memory of this process so far, in MiB."""


def peak_mb() -> float | None:
    """Return the highest resident memory so far in MiB; None where the system does not tell.

    On Linux without mapped files: how much of the libraries and of a mapped data set is resident is up to the page
    cache, and the same script had 88 MiB more of it on its second start. The system keeps only the peak of the sum, so
    this is a lower bound: the sum's less the most that was mapped, or what was seen.
    """
    found = _status()
    if len(found) == 3:
        _most[0] = max(_most[0], found[b"RssFile"])
        _most[1] = max(_most[1], found[b"VmRSS"] - found[b"RssFile"], found[b"VmHWM"] - _most[0])
        return _most[1]
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _status() -> dict[bytes, float]:
    """Return what the kernel says of this process, in MiB; unlike rusage it says nothing of what started it."""
    try:
        if not _open or _open[0] != os.getpid():  # a forked worker must not read its parent's
            _open[:] = [os.getpid(), os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)]
        return {name: int(kib) / 2**10 for name, kib in _FIELD.findall(os.pread(_open[1], 8192, 0))}
    except OSError:
        return {}


def cuda_peak_mb() -> float | None:
    """Return the highest memory held for tensors on all CUDA devices in MiB, None without CUDA."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    return sum(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count())) / 2**20

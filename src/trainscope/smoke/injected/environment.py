"""Where the script runs: what must agree before two runs can be compared number by number."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import torch

from .sink import world_size

_PACKAGES = ("accelerate", "deepspeed", "lightning", "numpy", "pytorch_lightning", "transformers")


def facts(device: str | None) -> dict[str, Any]:
    """Return the environment, without host name, user or path."""
    if device == "cuda":
        device = f"cuda {torch.cuda.get_device_name()}"
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "device": device,
        "cuda": torch.version.cuda,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "world_size": world_size(),
        "packages": {
            name: str(getattr(sys.modules[name], "__version__", "unknown")) for name in _PACKAGES if name in sys.modules
        },
    }


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)

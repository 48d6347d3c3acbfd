"""Named bundles of the recorder's settings."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from trainscope.core.errors import ConfigError, did_you_mean

PROFILES: Mapping[str, Mapping[str, Any]] = types.MappingProxyType(
    {
        "default": {},
        "minimal": {
            "full_resolution_window": 250,
            "decimation_factor": 20,
            "histogram_every_n_steps": 100,
            "activation_metrics_every_n_steps": 50,
            "activation_layer_filter": ["attn", "mlp"],
            "track_memory": False,
        },
        "debug": {
            "full_resolution_window": 2000,
            "histogram_every_n_steps": 1,
            "activation_metrics_every_n_steps": 1,
        },
        "production": {
            "full_resolution_window": 1000,
            "checkpoint_on_spike": True,
            "rng_every_n_steps": 100,
        },
    }
)
"""Named bundles of defaults, chosen with the key ``profile`` or the variable ``TRAINSCOPE_PROFILE``."""


def with_profile(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables of settings as one, on top of the profile that they choose.

    Raises
    ------
    ConfigError
        If there is no such profile.
    """
    merged = {**weak, **strong}
    name = merged.pop("profile", "default")
    if not isinstance(name, str) or name not in PROFILES:
        raise ConfigError(f"profile = {name!r}: no such profile{did_you_mean(str(name), PROFILES)}")
    return {**PROFILES[name], **merged}

"""What a user may set for the recorder, and every place it may be written.

Strongest last: the defaults, a profile, a YAML, JSON or TOML file, ``TRAINSCOPE_<FIELD>`` variables, and
what the code itself passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from trainscope.core import environment
from trainscope.core.config_files import read_table
from trainscope.core.config_values import encodes, plain
from trainscope.core.errors import ConfigError, did_you_mean
from trainscope.core.profiles import with_profile

MOST = 2**31 - 1
"""Of a number of steps: longer than any run, and it fits everywhere."""
AtLeast0 = Annotated[int, Field(ge=0, le=MOST)]
AtLeast1 = Annotated[int, Field(ge=1, le=MOST)]
_ENVIRONMENT = "environment: "
NAME_BYTES = 200
"""Of a run's name; file systems allow 255, and a number and the rank must fit behind it."""

_MOVED = {
    "spike_threshold": "thresholds live in the detector: detector = {name = 'z_score', threshold = 3.5}",
    "profile": "a profile is chosen in a file, in load_config({'profile': 'debug'}) or by TRAINSCOPE_PROFILE",
}


class TrainScopeConfig(BaseModel):
    """Settings of one recording; a wrong one is a `ConfigError` that names it.

    Raises
    ------
    ConfigError
        If a field is unknown (the nearest one is suggested) or a value is not allowed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)

    run_dir: str = "./trainscope_runs"
    """Root folder of the runs."""
    run_name: str | None = None
    """Folder of this run; ``run_YYYYMMDD_HHMMSS`` if not given. A taken name gets ``-2``, ``-3``, ..."""
    full_resolution_window: AtLeast1 = 500
    """The last steps of which every row is kept, at least; of ``global.arrow`` the last 100,000."""
    decimation_factor: AtLeast1 = 10
    """Of n older steps the one with most statistics is kept (and, in ``spikes/``, all steps around a spike)."""
    spike_window_before: AtLeast0 = 50
    """Steps before a spike that are saved with it."""
    spike_window_after: AtLeast0 = 10
    """Steps after a spike that are saved with it."""
    n_histogram_bins: Annotated[int, Field(ge=2, le=4096)] = 16
    """Bins of a weight histogram."""
    histogram_every_n_steps: AtLeast1 = 50
    """Weight histograms every n-th step."""
    activation_metrics_every_n_steps: AtLeast1 = 5
    """Activations, attention and Adam's moments every n-th step."""
    activation_layer_filter: list[str] | None = None
    """Only modules whose dotted name contains one of these; None means every leaf module."""
    stop_on_spike: bool = False
    """Raise ``StopTraining`` on a spike."""
    trace_every_n_steps: AtLeast1 = 1
    """Per-layer statistics every n-th step; the loss is watched at every step all the same."""
    rank: AtLeast0 | None = None
    """Rank of this process, for the suffix ``_rank<N>``; taken from torch.distributed if not given."""
    compaction_every_n_steps: AtLeast1 = 1000
    """At least this often the journal is folded into the per-layer files, and a remote copy updated."""
    device: str | None = None
    """Where statistics are computed; None means where each tensor already is."""
    track_memory: bool = True
    """Record the memory of the process and of CUDA."""
    checkpoint_on_spike: bool | str | None = None
    """True writes ``checkpoints/<step>.pt``; a string is a path with ``{step}`` in it."""
    rng_every_n_steps: AtLeast0 = 0
    """Save the RNG state every n steps; 0 means at spikes only."""
    resume: bool = False
    """Go on in the folder called `run_name`, if there is one."""
    integrations: dict[str, Any] = Field(default_factory=dict)
    """``{"wandb": {"enabled": True, "alerts": False}}``: an active ``wandb.run`` gets loss, gradient norm and spikes;
    with ``alerts`` each spike is an alert there too."""
    alerts: list[Any] = Field(default_factory=list)
    """Callables, or dotted paths to them; each is called with every spike, as ``scope.step`` returns it."""
    storage_uri: str | None = None
    """``s3://``, ``gs://``, ... root that the run is copied to while it is written."""
    detector: str | dict[str, Any] = Field(default_factory=lambda: {"name": "changepoint"})
    """Name of the live detector, or a dict of its name and parameters."""
    metric_plugins: list[Any] = Field(default_factory=list)
    """``MetricPlugin`` classes, instances or dotted paths to them."""
    detector_plugins: list[Any] = Field(default_factory=list)
    """``AnomalyDetector`` classes, instances or dotted paths; they run beside the chosen detector."""

    def __init__(self, **data: object) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise ConfigError(_reason(error)) from None

    @field_validator("run_dir", mode="before")
    @classmethod
    def _path_as_text(cls, value: object) -> object:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @field_validator("run_dir", "run_name", "storage_uri")
    @classmethod
    def _can_be_a_path(cls, value: str | None) -> str | None:
        if value is not None and (not value or "\0" in value or not encodes(value)):
            raise ValueError("expected text that can be a path")
        return value

    @field_validator("run_name")
    @classmethod
    def _one_folder(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if value.startswith(".") or any(c in value for c in "/\\"):
            raise ValueError("expected the name of one folder, without a slash or a dot in front")
        if len(value.encode()) > NAME_BYTES:
            raise ValueError(f"expected at most {NAME_BYTES} bytes")
        return value

    @field_validator("storage_uri")
    @classmethod
    def _has_a_scheme(cls, value: str | None) -> str | None:
        if value is not None and "://" not in value:
            raise ValueError("expected a URI such as s3://bucket/folder")
        return value

    @field_validator("checkpoint_on_spike")
    @classmethod
    def _template(cls, value: bool | str | None) -> bool | str | None:
        if isinstance(value, str) and "{step}" not in value:
            raise ValueError("expected true, false, or a path with {step} in it, so that checkpoints differ")
        return value

    @field_validator("detector", mode="before")
    @classmethod
    def _named_detector(cls, value: object) -> object:
        if value is None:
            return {"name": "changepoint"}
        named = value if isinstance(value, str) else value.get("name") if isinstance(value, dict) else None
        if not isinstance(named, str) or not named:
            raise ValueError("expected a detector's name, or a dict with a name and its parameters")
        return value

    @field_validator("integrations")
    @classmethod
    def _known_integrations(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, settings in value.items():
            if name != "wandb":
                raise ValueError(f"unknown integration {name!r}{did_you_mean(name, ('wandb',))}")
            if not isinstance(settings, dict) or not all(isinstance(v, bool) for v in settings.values()):
                raise ValueError("expected {'wandb': {'enabled': true or false, 'alerts': true or false}}")
            for key in settings.keys() - {"enabled", "alerts"}:
                raise ValueError(f"wandb: unknown key {key!r}{did_you_mean(str(key), ('enabled', 'alerts'))}")
        return value

    @model_validator(mode="after")
    def _window_fits(self) -> TrainScopeConfig:
        if self.spike_window_before > self.full_resolution_window:
            raise ValueError(
                f"spike_window_before = {self.spike_window_before}: must not exceed full_resolution_window = "
                f"{self.full_resolution_window}, older steps are thinned out"
            )
        return self

    @property
    def detector_name(self) -> str:
        """Name of the live detector."""
        return self.detector if isinstance(self.detector, str) else str(self.detector["name"])

    @property
    def detector_params(self) -> dict[str, Any]:
        """Parameters the user gave for the live detector."""
        return {} if isinstance(self.detector, str) else {k: v for k, v in self.detector.items() if k != "name"}

    def to_dict(self) -> dict[str, Any]:
        """Return every field, plug-in objects as their dotted path: fit for JSON."""
        return {name: plain(getattr(self, name)) for name in type(self).model_fields}

    @classmethod
    def from_yaml(cls, path: str | Path) -> TrainScopeConfig:
        """Read a YAML file, without looking at the environment."""
        return cls(**with_profile(read_table(Path(path)), {}))

    @classmethod
    def from_env(cls, prefix: str = environment.PREFIX) -> TrainScopeConfig:
        """Read the ``TRAINSCOPE_<FIELD>`` variables only."""
        return cls(**with_profile({}, _from_environment(prefix)))


def load_config(source: str | Path | Mapping[str, Any] | TrainScopeConfig | None = None) -> TrainScopeConfig:
    """Return the settings from a file, a dict or the environment.

    Parameters
    ----------
    source : path, mapping, TrainScopeConfig or None
        A ``.yaml``, ``.yml``, ``.json`` or ``.toml`` file, which the environment overrides; a mapping,
        which overrides the environment; a config, which is returned as it is; None for the environment
        alone. The key ``profile`` chooses one of `trainscope.core.profiles.PROFILES`.

    Raises
    ------
    ConfigError
        If the file cannot be read or parsed, or a field, value or profile is wrong; one line that names it.
    """
    if isinstance(source, TrainScopeConfig):
        return source
    told = _from_environment()
    if source is None or isinstance(source, Mapping):
        given = source or {}
        return _made(told, given, lambda field: _ENVIRONMENT if field in told.keys() - given.keys() else "")
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError(f"source = {source!r:.60}: expected a path, a dict or a TrainScopeConfig")
    path = Path(source)
    return _made(read_table(path), told, lambda field: _ENVIRONMENT if field in told else f"{path}: ")


def _made(weak: Mapping[str, Any], strong: Mapping[str, Any], place: Callable[[str], str]) -> TrainScopeConfig:
    """Return the settings of two sources, or say in which one they are wrong."""
    try:
        return TrainScopeConfig(**with_profile(weak, strong))
    except ConfigError as error:
        raise ConfigError(f"{place(str(error).partition(' ')[0])}{error}") from None


def _from_environment(prefix: str = environment.PREFIX) -> dict[str, Any]:
    fields = TrainScopeConfig.model_fields
    found = environment.fields_from(os.environ, (*fields, "profile"), prefix=prefix)
    kinds = {name: environment.kinds_of(field.annotation) for name, field in fields.items()}
    kinds["profile"] = frozenset({"str"})
    return {name: environment.parse(prefix + name.upper(), text, kinds[name]) for name, text in found.items()}


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return str(first["ctx"]["error"])
    key = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        hint = _MOVED.get(key)
        return f"unknown field {key!r}" + (f"; {hint}" if hint else did_you_mean(key, TrainScopeConfig.model_fields))
    message = first["msg"].removeprefix("Value error, ")
    return f"{key} = {first['input']!r:.60}: {message[0].lower()}{message[1:]}"

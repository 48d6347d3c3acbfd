import json

import pytest

from trainscope.core.config import TrainScopeConfig, load_config
from trainscope.core.errors import ConfigError
from trainscope.core.profiles import PROFILES

DOCUMENTED_DEFAULTS = {
    "run_dir": "./trainscope_runs",
    "run_name": None,
    "full_resolution_window": 500,
    "decimation_factor": 10,
    "spike_window_before": 50,
    "spike_window_after": 10,
    "n_histogram_bins": 16,
    "histogram_every_n_steps": 50,
    "activation_metrics_every_n_steps": 5,
    "activation_layer_filter": None,
    "stop_on_spike": False,
    "trace_every_n_steps": 1,
    "rank": None,
    "compaction_every_n_steps": 1000,
    "device": None,
    "track_memory": True,
    "checkpoint_on_spike": None,
    "rng_every_n_steps": 0,
    "resume": False,
    "integrations": {},
    "alerts": [],
    "storage_uri": None,
    "detector": {"name": "changepoint"},
    "metric_plugins": [],
    "detector_plugins": [],
}


def test_every_field_has_its_documented_default():
    assert TrainScopeConfig().to_dict() == DOCUMENTED_DEFAULTS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("full_resolution_window", "500"),
        ("full_resolution_window", 0),
        ("full_resolution_window", True),
        ("decimation_factor", 0),
        ("spike_window_after", -1),
        ("n_histogram_bins", 1),
        ("stop_on_spike", "yes"),
        ("activation_layer_filter", "attn"),
        ("rank", -1),
        ("checkpoint_on_spike", "always_the_same.pt"),
        ("detector", {"threshold": 3}),
        ("detector", 3),
        ("run_name", "../outside"),
        ("run_name", ""),
        ("storage_uri", 3),
        ("storage_uri", "nonsense"),
        ("storage_uri", ""),
        ("run_dir", ""),
        ("run_dir", "a\0b"),
        ("run_dir", "\ud800"),
        ("run_name", "\ud800"),
        ("run_name", ".hidden"),
        ("run_name", "x" * 201),
        ("n_histogram_bins", 2**40),
        ("spike_window_after", 2**70),
        ("decimation_factor", 2**31),
    ],
)
def test_a_wrong_value_is_one_line_that_starts_with_its_field(field, value):
    with pytest.raises(ConfigError, match=f"^{field} = ") as error:
        TrainScopeConfig(**{field: value})
    assert "\n" not in str(error.value)


def test_an_unknown_field_suggests_the_nearest():
    with pytest.raises(ConfigError, match="'decimation_facto'; did you mean 'decimation_factor'"):
        TrainScopeConfig(decimation_facto=3)


def test_the_old_spike_threshold_points_to_the_detector():
    with pytest.raises(ConfigError, match="thresholds live in the detector"):
        TrainScopeConfig(spike_threshold=3.5)


def test_a_spike_window_longer_than_what_is_kept_is_refused():
    with pytest.raises(ConfigError, match="spike_window_before = 50: must not exceed"):
        TrainScopeConfig(full_resolution_window=20)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_valid(profile):
    config = load_config({"profile": profile})
    for field, value in PROFILES[profile].items():
        assert getattr(config, field) == value


def test_plug_in_objects_become_text_in_the_dictionary():
    config = TrainScopeConfig(metric_plugins=[json.JSONEncoder, json.JSONEncoder()])
    assert config.to_dict()["metric_plugins"] == ["json.encoder.JSONEncoder"] * 2
    json.dumps(config.to_dict())


def test_a_profile_in_the_code_is_told_where_it_belongs():
    with pytest.raises(ConfigError, match=r"unknown field 'profile'; .*load_config\(\{'profile': 'debug'\}\)"):
        TrainScopeConfig(profile="debug")

"""The recorder's settings from the environment, and which place overrides which."""

import json
import re

import pytest

from trainscope.core.config import TrainScopeConfig, load_config
from trainscope.core.errors import ConfigError


@pytest.mark.parametrize("word", ["false", "False", "0", "no", "off"])
def test_false_in_the_environment_means_false(monkeypatch, word):
    monkeypatch.setenv("TRAINSCOPE_CHECKPOINT_ON_SPIKE", word)
    monkeypatch.setenv("TRAINSCOPE_TRACK_MEMORY", word)
    config = load_config()
    assert config.checkpoint_on_spike is False
    assert config.track_memory is False


def test_the_environment_is_read_as_the_type_of_each_field(monkeypatch):
    variables = {
        "RUN_NAME": "123",
        "RANK": "1",
        "ACTIVATION_LAYER_FILTER": "attn, mlp",
        "DETECTOR": '{"name": "z_score", "threshold": 4.0}',
        "CHECKPOINT_ON_SPIKE": "ck/{step}.pt",
        "DEVICE": "none",
        "METRIC_PLUGINS": "[my.plugin.Metric]",
        "FULL_RESOLUTION_WINDOW": "250",
    }
    for name, text in variables.items():
        monkeypatch.setenv("TRAINSCOPE_" + name, text)
    config = load_config()
    assert config.run_name == "123"
    assert config.rank == 1
    assert config.activation_layer_filter == ["attn", "mlp"]
    assert config.detector_params == {"threshold": 4.0}
    assert config.checkpoint_on_spike == "ck/{step}.pt"
    assert config.device is None
    assert config.metric_plugins == ["my.plugin.Metric"]
    assert config.full_resolution_window == 250
    assert TrainScopeConfig.from_env() == config


def test_a_variable_that_is_one_slip_away_is_an_error_and_others_are_left_alone(monkeypatch):
    monkeypatch.setenv("TRAINSCOPE_API_KEY", "secret")
    assert load_config() == TrainScopeConfig()
    monkeypatch.setenv("TRAINSCOPE_DECIMATION_FACTR", "3")
    with pytest.raises(ConfigError, match="did you mean 'TRAINSCOPE_DECIMATION_FACTOR'"):
        load_config()


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("TRAINSCOPE_RANK", "first")
    with pytest.raises(ConfigError, match="TRAINSCOPE_RANK = 'first': expected a whole number"):
        load_config()


def test_the_environment_overrides_a_file_and_the_code_overrides_both(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"profile": "minimal", "decimation_factor": 7, "n_histogram_bins": 4}))
    monkeypatch.setenv("TRAINSCOPE_DECIMATION_FACTOR", "8")
    config = load_config(path)
    assert (config.full_resolution_window, config.n_histogram_bins, config.decimation_factor) == (250, 4, 8)
    assert load_config({"decimation_factor": 9}).decimation_factor == 9
    given = TrainScopeConfig(decimation_factor=3)
    assert load_config(given) is given


@pytest.mark.parametrize(
    ("told", "in_file", "message"),
    [
        ({"TRACE_EVERY_N_STEPS": "0"}, "{}", "environment: trace_every_n_steps = 0"),
        ({"TRACE_EVERY_N_STEPS": "2"}, '{"rank": -1}', "PATH: rank = -1"),
        ({"PROFILE": "foo"}, '{"profile": "debug"}', "environment: profile = 'foo'"),
        ({"RANK": "1"}, '{"profile": "foo"}', "PATH: profile = 'foo'"),
    ],
)
def test_a_wrong_value_is_told_with_the_place_that_it_comes_from(tmp_path, monkeypatch, told, in_file, message):
    path = tmp_path / "recorder.json"
    path.write_text(in_file)
    for name, value in told.items():
        monkeypatch.setenv(f"TRAINSCOPE_{name}", value)
    with pytest.raises(ConfigError, match=re.escape(message.replace("PATH", str(path)))) as caught:
        load_config(path)
    assert str(caught.value).startswith(message.replace("PATH", str(path)))


def test_a_wrong_value_of_the_environment_is_told_as_such_and_one_of_the_code_is_not(monkeypatch):
    monkeypatch.setenv("TRAINSCOPE_TRACE_EVERY_N_STEPS", "0")
    with pytest.raises(ConfigError, match=r"^environment: trace_every_n_steps = 0"):
        load_config()
    with pytest.raises(ConfigError, match=r"^trace_every_n_steps = -1"):
        load_config({"trace_every_n_steps": -1})


def test_two_places_may_make_a_window_that_neither_makes_alone(tmp_path, monkeypatch):
    path = tmp_path / "recorder.toml"
    path.write_text("full_resolution_window = 2000")
    monkeypatch.setenv("TRAINSCOPE_SPIKE_WINDOW_BEFORE", "900")
    assert load_config(path).spike_window_before == 900

import json
import re

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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "decimation_factor: 7\ndetector: {name: z_score, threshold: 3.5}\n"),
        ("c.yml", "decimation_factor: 7\ndetector:\n  name: z_score\n  threshold: 3.5\n"),
        ("c.json", '{"decimation_factor": 7, "detector": {"name": "z_score", "threshold": 3.5}}'),
        ("c.toml", 'decimation_factor = 7\n[detector]\nname = "z_score"\nthreshold = 3.5\n'),
    ],
)
def test_yaml_json_and_toml_say_the_same(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    config = load_config(path)
    assert config.decimation_factor == 7
    assert (config.detector_name, config.detector_params) == ("z_score", {"threshold": 3.5})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.yaml", "a: [", "not valid YAML"),
        ("c.json", "{", "not valid JSON"),
        ("c.toml", "a = ", "not valid TOML"),
        ("c.yaml", "- 1\n", "expected a table"),
        ("c.yaml", "1: 2\n", "1: the name of a setting must be text"),
        ("c.json", "[" * 100_000, "nested too deeply"),
        ("c.yaml", "[" * 3_000, "nested too deeply"),
        ("c.yaml", "alerts: &a [*a]\n", "nested too deeply"),
        ("c.yaml", "detector: &a {name: z_score, x: *a}\n", "nested too deeply"),
        ("c.json", "", "not valid JSON"),
        ("c.yaml", "decimation_factor: x\n", "decimation_factor = 'x'"),
        ("c.yaml", "profile: prodction\n", "did you mean 'production'"),
        ("c.yaml", "profile: 3\n", "no such profile"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("source", [5, ["a.yaml"], "a\0b"])
def test_what_is_no_place_for_settings_is_an_error_of_ours(source):
    with pytest.raises(ConfigError, match=r"expected a path|cannot be read"):
        load_config(source)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read"):
        load_config(tmp_path / "gone.yaml")


def test_an_empty_file_means_the_defaults(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("")
    assert load_config(path) == TrainScopeConfig()


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


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_valid(profile):
    config = load_config({"profile": profile})
    for field, value in PROFILES[profile].items():
        assert getattr(config, field) == value


def test_plug_in_objects_become_text_in_the_dictionary():
    config = TrainScopeConfig(metric_plugins=[json.JSONEncoder, json.JSONEncoder()])
    assert config.to_dict()["metric_plugins"] == ["json.encoder.JSONEncoder"] * 2
    json.dumps(config.to_dict())


@pytest.mark.parametrize(("name", "text"), [("c.json", '{"rank": 1}'), ("c.toml", "rank = 1"), ("c.yaml", "rank: 1")])
def test_a_file_with_a_byte_order_mark_is_read(tmp_path, name, text):
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_config(tmp_path / name).rank == 1


@pytest.mark.parametrize("name", ["c.yaml", "c.toml"])
def test_an_empty_file_sets_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert load_config(tmp_path / name) == TrainScopeConfig()


def test_a_folder_a_missing_file_and_one_that_is_not_utf8_are_one_line_each(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "latin.yaml").write_bytes("run_name: café".encode("latin1"))
    said = {"folder.yaml": "Is a directory", "none.yaml": "No such file or directory", "latin.yaml": "not UTF-8"}
    for name, words in said.items():
        with pytest.raises(ConfigError, match=f"^{tmp_path / name}: cannot be read \\({words}") as error:
            load_config(tmp_path / name)
        assert "\n" not in str(error.value)


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


def test_a_profile_in_the_code_is_told_where_it_belongs():
    with pytest.raises(ConfigError, match=r"unknown field 'profile'; .*load_config\(\{'profile': 'debug'\}\)"):
        TrainScopeConfig(profile="debug")

"""The recorder's settings from a file: YAML, JSON and TOML say the same, and a bad file is one line."""

import pytest

from trainscope.core.config import TrainScopeConfig, load_config
from trainscope.core.errors import ConfigError


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
        ("c.yaml", "[" * 1_000, "nested too deeply"),
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

"""The configuration that stands beside a log."""

import itertools
import json
import pickle

import pytest

from trainscope.readers import read_runs
from trainscope.readers.config_values import MASKED, MAX_NODES, flat, masked, options, parse_yaml

CSV = "step,loss,lr\n" + "".join(f"{i},{5 - i / 100},0.001\n" for i in range(40))


def log(folder, name="metrics.csv", text=CSV):
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)
    return folder / name


def only(path):
    (run,) = read_runs(path)
    return run


def test_lightning_hyperparameters_are_read_with_tuples_and_without_python_objects(tmp_path):
    path = log(tmp_path)
    (tmp_path / "hparams.yaml").write_text(
        "lr: 1e-4\nbetas: !!python/tuple [0.9, 0.95]\nmodel:\n  depth: 4\n  act: gelu\n"
        "bad: !!python/object/apply:os.system ['touch pwned']\ncallback: !!python/object:some.Class {a: 1}\n"
    )
    run = only(path)
    assert run.config["lr"] == 1e-4
    assert run.config["betas"] == "[0.9, 0.95]"
    assert run.config["model.depth"] == 4
    assert run.config["model.act"] == "gelu"
    assert "bad" not in run.config
    assert not (tmp_path / "pwned").exists()
    (note,) = [n for n in run.notes if n.kind == "config_not_read"]
    assert "2 values" in note.message


def test_a_tracker_envelope_is_undone_and_the_machine_stays_out(tmp_path):
    path = log(tmp_path)
    (tmp_path / "config.yaml").write_text(
        "wandb_version: 1\n_wandb:\n  value:\n    cli_version: 0.19\nlr:\n  desc: null\n  value: 0.1\n"
        "model:\n  value:\n    depth: 2\n"
    )
    (tmp_path / "wandb-metadata.json").write_text(
        json.dumps(
            {"host": "secret-host", "username": "me", "args": ["--lr", "0.5", "--wd=0.01", "--amp", "--n", "-3"]}
        )
    )
    config = only(path).config
    assert config["lr"] == 0.1  # the configuration wins over the command line
    assert config["model.depth"] == 2
    assert (config["wd"], config["amp"], config["n"]) == (0.01, True, -3)
    assert not any("host" in key or "wandb" in key or value == "me" for key, value in config.items())


def test_training_arguments_are_read_and_a_pickle_is_never_run(tmp_path):
    state = {"log_history": [{"step": i, "loss": 5 - i / 10} for i in range(1, 20)], "global_step": 19}
    log(tmp_path, "trainer_state.json", json.dumps(state))

    class Boom:
        def __reduce__(self):
            return (open, (str(tmp_path / "pwned"), "w"))

    (tmp_path / "training_args.bin").write_bytes(pickle.dumps(Boom()))
    run = only(tmp_path)
    assert any("training_args.bin was not read: it is no archive of torch.save" in note.message for note in run.notes)
    assert not (tmp_path / "pwned").exists()
    (tmp_path / "training_args.json").write_text(
        json.dumps({"learning_rate": 0.01, "lr_scheduler_kwargs": {"num_cycles": 2}, "hub_token": "hf_x"})
    )
    run = only(tmp_path)
    assert run.config["learning_rate"] == 0.01
    assert run.config["lr_scheduler_kwargs.num_cycles"] == 2
    assert run.config["hub_token"] == MASKED
    assert not any(note.kind == "config_not_read" for note in run.notes)


def test_arguments_of_a_checkpoint_may_stand_above_it(tmp_path):
    state = {"log_history": [{"step": i, "loss": 1.0} for i in range(1, 9)], "global_step": 8}
    path = log(tmp_path / "checkpoint-8", "trainer_state.json", json.dumps(state))
    (tmp_path / "training_args.json").write_text('{"learning_rate": 0.01}')
    assert only(path).config["learning_rate"] == 0.01


def test_a_configuration_beside_several_logs_is_nobodys_and_one_of_its_name_is_its_own(tmp_path):
    first, second = log(tmp_path, "a.csv"), log(tmp_path, "b.csv")
    (tmp_path / "config.yaml").write_text("lr: 1.0\n")
    (tmp_path / "b.config.json").write_text('{"lr": 2.0}')
    assert "lr" not in only(first).config
    assert only(second).config["lr"] == 2.0


def test_what_the_log_says_itself_wins(tmp_path):
    path = log(tmp_path, text='#{"lr": 7}\n' + CSV.replace("lr", "rate"))
    (tmp_path / "config.yaml").write_text("lr: 1\nwd: 2\n")
    run = only(path)
    assert (run.config["lr"], run.config["wd"]) == (7, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\n", "cannot be parsed"),
        ("- 1\n- 2\n", "holds no settings by name"),
        ("a: " + "[" * 1000, "config.yaml"),
        ("x" * 400_000, "larger than 256 KiB"),
        ("a: 1\n\tb: 2\n", "cannot be parsed"),
    ],
)
def test_a_broken_configuration_is_a_note_and_no_error(tmp_path, text, said):
    path = log(tmp_path)
    (tmp_path / "config.yaml").write_text(text)
    run = only(path)
    assert len(run.series)
    assert any(said in note.message for note in run.notes if note.kind == "config_not_read")


def test_aliases_that_multiply_are_cut_off():
    lines = ["a0: &a0 {x: 1, y: 2}"] + [f"a{i}: &a{i} {{l: *a{i - 1}, r: *a{i - 1}}}" for i in range(1, 40)]
    found, left_out = flat(parse_yaml("\n".join(lines)))
    assert len(found) <= MAX_NODES
    assert left_out > 0


def test_lists_in_lists_that_multiply_are_not_looked_into():
    """Nine levels of nine aliases are 387 million words."""
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in itertools.pairwise("abcdefghi"):
        text += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    found, left_out = flat(parse_yaml(text))
    assert found == {"a": "[x, x, x, x, x, x, x, x, x]"}
    assert left_out == 8


def test_secrets_are_masked_by_their_name_and_by_their_look():
    config = {
        "wandb_api_key": "0123456789",
        "db.password": "x",
        "hub_token": "y",
        "url": "https://me:pw@example.org/x",
        "note": "hf_abcdefghijklmnopqrstuv",
        "max_tokens": 512,
        "num_key_value_heads": 8,
        "key": "value",
        "tokenizer": "gpt2",
        "empty_token": "",
    }
    found = masked(config)
    assert [key for key, value in found.items() if value == MASKED] == [
        "wandb_api_key",
        "db.password",
        "hub_token",
        "url",
        "note",
    ]


def test_values_keep_their_types():
    found, left_out = flat({"a": 1, "b": True, "c": None, "d": "1e-4", "e": "1e", "f": [1, 2], "g": list(range(99))})
    assert found == {"a": 1, "b": True, "c": None, "d": 1e-4, "e": "1e", "f": "[1, 2]"}
    assert left_out == 1


def test_command_lines_are_options():
    args = ["train.py", "--lr", "0.1", "-v", "--name=a=b", "--flag", "--x", "-1"]
    assert dict(options(args)) == {"lr": 0.1, "v": True, "name": "a=b", "flag": True, "x": -1}
    assert dict(options("no list")) == {}

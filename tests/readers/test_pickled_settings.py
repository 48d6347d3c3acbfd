"""Pickled training arguments are read and never run."""

from __future__ import annotations

import enum
import io
import json
import pickle
import random
import zipfile
from pathlib import Path

import pytest

from trainscope.readers import read_runs
from trainscope.readers.config_values import MASKED
from trainscope.readers.pickled_settings import MAX_BYTES, settings_in


class Schedule(enum.Enum):
    COSINE = "cosine"


class Arguments:
    def __init__(self, **state: object) -> None:
        self.__dict__.update(state)


class Boom:
    """Would make a file if it were unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def archive(path: Path, thing: object, protocol: int = 2) -> Path:
    """Write what torch.save writes of an object without tensors."""
    with zipfile.ZipFile(path, "w") as found:
        found.writestr("training_args/data.pkl", thing if isinstance(thing, bytes) else pickle.dumps(thing, protocol))
        found.writestr("training_args/version", "3")
    return path


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_values_and_those_of_enumerations_are_read_and_other_objects_are_not(tmp_path, protocol):
    state = {"learning_rate": 3e-4, "steps": 10**12, "bf16": True, "name": "é", "wd": None, "betas": [0.9, 0.95],
             "schedule": Schedule.COSINE, "kwargs": {"cycles": 2}, "io": Arguments(a=1), "_private": 1}  # fmt: skip
    found = settings_in(archive(tmp_path / "a.bin", Arguments(**state), protocol))
    assert found.pop("io").__class__.__name__ == "_Object"
    assert found.pop("schedule") == "cosine"
    assert found == {k: v for k, v in state.items() if k not in {"schedule", "io", "_private"}}


@pytest.mark.parametrize("where", ["itself", "a value", "a list"])
def test_nothing_is_run(tmp_path, where):
    boom = Boom(tmp_path / "pwned")
    thing = {"itself": boom, "a value": Arguments(lr=0.1, x=boom), "a list": Arguments(lr=0.1, x=[boom])}[where]
    path = archive(tmp_path / "a.bin", thing)
    if where == "itself":
        with pytest.raises(ValueError, match="no settings by name"):
            settings_in(path)
    else:
        assert settings_in(path)["lr"] == 0.1
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "pickle"),
        (b"\x80\x02.", "damaged"),
        (b"\x80\x02}.", "no settings by name"),
        (b"\x80\x02N", "pickle"),
        (b"0.", "damaged"),
        (b"\x80\x02\x82\x01.", "has an opcode EXT1"),
        (b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", "bytearray8"),
        (b"(" * 60_000 + b".", "too long"),
        (b"N" * (MAX_BYTES + 1), "larger than 256 KiB"),
        (b"\x80\x02r\xff\xff\xff\xff.", "damaged"),
    ],
    ids="empty nothing dict no-end pop extension huge-array marks large memo".split(),  # noqa: SIM905
)
def test_anything_else_is_one_reason(tmp_path, body, said):
    with pytest.raises(ValueError, match=said):
        settings_in(archive(tmp_path / "a.bin", body))


def test_an_archive_without_a_pickle_and_no_archive_are_named(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"no archive of torch\.save"):
        settings_in(tmp_path / "a.bin")
    with zipfile.ZipFile(tmp_path / "b.bin", "w") as found:
        found.writestr("a/data.txt", "x")
    with pytest.raises(ValueError, match="holds no pickle"):
        settings_in(tmp_path / "b.bin")


def test_random_damage_never_raises_anything_else(tmp_path):
    whole = pickle.dumps(Arguments(lr=0.1, kwargs={"a": [1, 2]}, schedule=Schedule.COSINE), 2)
    rng = random.Random(0)
    for _ in range(300):
        body = bytearray(whole)
        for _ in range(3):
            body[rng.randrange(len(body))] = rng.randrange(256)
        try:
            settings_in(archive(tmp_path / "a.bin", bytes(body)))
        except ValueError:
            continue


@pytest.mark.slow
def test_what_a_trainer_saves_in_its_checkpoints_is_the_configuration_of_its_run(tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    checkpoint = tmp_path / "checkpoint-40"
    checkpoint.mkdir()
    arguments = transformers.TrainingArguments(
        str(tmp_path), learning_rate=3e-4, lr_scheduler_type="cosine", report_to=[], use_cpu=True, seed=7,
        hub_token="hf_abcdefghijklmnopqrst",
    )  # fmt: skip
    torch.save(arguments, checkpoint / "training_args.bin")
    history = [{"step": step, "loss": 2.5} for step in range(1, 41)]
    (checkpoint / "trainer_state.json").write_text(json.dumps({"global_step": 40, "log_history": history}))
    for path in (tmp_path, checkpoint, checkpoint / "trainer_state.json"):
        (run,) = read_runs(str(path))
        assert run.config["learning_rate"] == 3e-4
        assert run.config["lr_scheduler_type"] == "cosine"
        assert run.config["seed"] == 7
        assert run.config["hub_token"] == MASKED
    buffer = io.BytesIO()
    torch.save({"weights": torch.zeros(3)}, buffer)
    (checkpoint / "training_args.bin").write_bytes(buffer.getvalue())
    (run,) = read_runs(str(checkpoint))
    assert "learning_rate" not in run.config
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-40"]

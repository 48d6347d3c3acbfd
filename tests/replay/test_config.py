"""The file of a plan reads back, is what its schema says, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from trainscope.core.errors import ConfigError, ReadError
from trainscope.replay.config import Batch, ReplayConfig, Source, is_replay_config, load
from trainscope.replay.request import batches_from, request
from trainscope.replay.schema import schema_text

ROOT = Path(__file__).parents[2]
WHOLE = ReplayConfig(
    checkpoint="checkpoints/step_80.pt",
    resume=True,
    skip_batches=[180, 181],
    cause="data",
    onset=180,
    rewind_to_step=80,
    steps=[180, 181],
    batches=[Batch(index=180, step=180, hash="0a1b2c3d", is_bad=True), Batch(index=181, step=181)],
    source=Source(id="0123456789ab", name="smoke", path="smoke", seed=1, steps=300),
    commands=["trainscope smoke --replay replay_config.json -- COMMAND"],
)


def test_a_plan_reads_back_and_is_what_the_published_schema_says(tmp_path):
    file = tmp_path / "replay_config.json"
    file.write_text(WHOLE.to_json())
    assert load(file) == WHOLE
    schema = json.loads((ROOT / "schemas" / "replay-1.schema.json").read_text())
    jsonschema.validate(json.loads(WHOLE.to_json()), schema)
    jsonschema.validate({"skip_batches": [1], "of_the_future": 3}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"skip_batches": [-1]}, schema)


def test_the_published_schema_is_that_of_the_code():
    assert (ROOT / "schemas" / "replay-1.schema.json").read_text() == schema_text()


def test_a_script_needs_one_line_of_it():
    assert json.loads(WHOLE.to_json())["skip_batches"] == [180, 181]


def test_one_by_hand_is_enough_and_fields_of_the_future_are_ignored(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"skip_batches": [3, 4], "of_the_future": {}}')
    assert load(file).skip_batches == [3, 4]
    assert not is_replay_config(file), "somebody wrote it by hand: it is not ours to replace"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "has no skip_batches"),
        ('{"findings": []}', "has no skip_batches"),
        ('{"skip_batches": "4521"}', "skip_batches: "),
        ('{"skip_batches": [-1]}', "skip_batches.0: "),
        ('{"skip_batches": [1], "kind": "other"}', "kind: "),
        ('{"skip_batches": [1], "schema_version": "2.0"}', "schema_version: "),
        ("[" * 20_000, "is not JSON"),
        ("\xff\xfe", "is not JSON"),
    ],
)
def test_anything_else_is_one_clear_line(content, said, tmp_path):
    file = tmp_path / "x.json"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(ReadError) as error:
        load(file)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not is_replay_config(file)


def test_a_missing_file_and_a_folder_say_what_to_do(tmp_path):
    with pytest.raises(ReadError, match="no such file; trainscope replay writes one"):
        load(tmp_path / "nothing.json")
    with pytest.raises(ReadError, match=r"name the replay_config\.json in it"):
        load(tmp_path)


def test_batches_come_from_lists_ranges_and_files(tmp_path):
    file = tmp_path / "batches.txt"
    file.write_text("\ufeff4521\n\n4522, 4523,  # from the report\n# a comment\n4600-4602\n", encoding="utf-8")
    assert batches_from([f"@{file}", "7,5"]) == (5, 7, 4521, 4522, 4523, 4600, 4601, 4602)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("12\nabc\n", "batches.txt:2: 'abc' is no batch number"),
        ("\n# nothing\n", "holds no batch number"),
        (b"\xff\xfe\x00", "is no text"),
    ],
)
def test_a_bad_file_is_named_with_its_line(content, said, tmp_path):
    file = tmp_path / "batches.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as error:
        batches_from([f"@{file}"])
    assert said in str(error.value)


def test_bad_lists_and_missing_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="--skip-batches: '4521;4522' is no batch number"):
        batches_from(["4521;4522"])
    with pytest.raises(ConfigError, match="cannot be read"):
        batches_from([f"@{tmp_path}/nothing"])
    with pytest.raises(ConfigError, match="cannot be read"):
        batches_from([f"@{tmp_path}"])


def test_a_request_knows_the_step_of_its_checkpoint():
    plan = request("checkpoints/step_4400.pt", (4521, 4522), resume=True)
    assert (plan.rewind_to_step, plan.skip_batches, plan.resume) == (4400, [4521, 4522], True)


def test_a_plan_may_begin_with_a_byte_order_mark_and_come_from_a_pipe(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text('{"skip_batches": [3]}', encoding="utf-8-sig")
    assert load(file).skip_batches == [3]


@pytest.mark.parametrize("number", [2**53, 10**400, -1])
@pytest.mark.parametrize("field", ["onset", "loader", "rewind_to_step"])
def test_numbers_of_steps_are_no_larger_than_json_has_them(field, number, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"skip_batches": [], field: number}))
    with pytest.raises(ReadError, match=rf"plan\.json: {field}: .*; write it anew with trainscope replay"):
        load(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end on this system")
def test_a_file_without_an_end_is_refused():
    with pytest.raises(ReadError, match="is larger than 256 MiB, so it is no replay configuration"):
        load("/dev/zero")
    with pytest.raises(ConfigError, match="--skip-batches @/dev/zero: is too large for a list of batches"):
        batches_from(["@/dev/zero"])


def test_many_ranges_are_no_way_around_the_longest_list():
    ranges = [f"{first}-{first + 599_999}" for first in (0, 600_000)]
    for texts in ([",".join(ranges)], ranges):
        with pytest.raises(ConfigError, match=r"--skip-batches: .*more than 1,000,000 batches"):
            batches_from(texts)


@pytest.mark.parametrize("number", [True, "1", 1.5])
def test_a_position_is_a_whole_number_and_nothing_that_can_be_made_one(number, tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"skip_batches": [number]}))
    with pytest.raises(ReadError, match=r"skip_batches\.0: "):
        load(tmp_path / "plan.json")


def test_a_file_that_is_not_named_is_one_clear_line():
    with pytest.raises(ConfigError, match="--skip-batches @: names no file"):
        batches_from(["@"])

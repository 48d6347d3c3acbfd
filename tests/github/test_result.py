"""The file that says how a check ended, and its published schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from trainscope.github.result import BaselineSource, CheckResult
from trainscope.github.schema import schema_text

SCHEMA = Path(__file__).parents[2] / "schemas" / "check-1.schema.json"
SHA = "a" * 40


def test_the_published_schema_is_that_of_the_code():
    assert SCHEMA.read_text() == schema_text(), "run: python -m trainscope.github.schema > schemas/check-1.schema.json"


def test_what_is_written_is_what_the_schema_says_and_other_things_are_not():
    schema = json.loads(SCHEMA.read_text())
    source = BaselineSource(sha=SHA, start="b" * 40, distance=2, run_id=7)
    whole = CheckResult(verdict="error", exit_code=4, reason="no step", output=["x"], head=SHA, baseline=source)
    jsonschema.validate(json.loads(whole.to_json()), schema)
    jsonschema.validate({"verdict": "pass", "exit_code": 0, "of_the_future": 1}, schema)
    for wrong in ({"verdict": "pass"}, {"verdict": "maybe", "exit_code": 0}, {"verdict": "pass", "exit_code": 256}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"verdict": "pass", "exit_code": 0, "head": "main; rm"}, schema)

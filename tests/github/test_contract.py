"""The facts that the stand-in for GitHub is held to, against GitHub's own description of its API."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.github import contract

DESCRIPTION = os.environ.get("GITHUB_OPENAPI")
"""``api.github.com.deref.json`` of the npm package @octokit/openapi."""


def test_a_request_that_github_would_not_understand_is_noticed():
    path = "/repos/a/b/issues/1/comments"
    assert contract.wrong_request("POST", path, {"body": "x"}) is None
    assert contract.wrong_request("GET", f"{path}?per_page=100&page=2", None) is None
    assert contract.wrong_request("POST", path, {"text": "x"}) == f"POST {path}: 'body' is a required property"
    assert contract.wrong_request("POST", path, None) == f"POST {path}: None is not of type 'object'"
    assert contract.wrong_request("GET", f"{path}?pages=2", None) == f"GET {path}: no such query: ['pages']"
    assert contract.wrong_request("PUT", path, {"body": "x"}) == f"PUT {path}: no such operation"
    assert contract.wrong_request("GET", path, {"body": "x"}) == f"GET {path}: takes no body"


def test_an_answer_that_github_never_gives_is_noticed():
    path = "/repos/a/b/commits"
    assert contract.wrong_answer("GET", path, 200, [{"sha": "1"}]) is None
    assert "answers 200, never 204" in str(contract.wrong_answer("GET", path, 204, []))
    assert "1 is not of type 'string'" in str(contract.wrong_answer("GET", path, 200, [{"sha": 1}]))
    assert "'hash' was unexpected" in str(contract.wrong_answer("GET", path, 200, [{"hash": "1"}]))


def test_the_facts_are_those_of_githubs_description():
    if DESCRIPTION is None:
        pytest.skip("not compared: GITHUB_OPENAPI names no description of GitHub's API")
    paths = json.loads(Path(DESCRIPTION).read_text(encoding="utf-8"))["paths"]
    for one in contract.OPERATIONS:
        said = paths[one.path][one.method.lower()]
        query = {p["name"] for p in said.get("parameters", []) if p["in"] == "query"}
        assert (one.path, set(one.query) - query) == (one.path, set())
        assert str(one.status) in said["responses"]
        taken = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if taken is not None:
            assert one.body is not None
            assert (one.path, set(one.body["properties"])) == (one.path, set(taken["properties"]))
            assert one.body["required"] == taken["required"]
        answered = said["responses"][str(one.status)].get("content", {}).get("application/json", {}).get("schema", {})
        assert (one.path, list(_unknown(one.answer, answered))) == (one.path, [])


def _unknown(ours, theirs, at=""):
    """Give the fields of our schema that theirs does not have."""
    if "items" in ours:
        yield from _unknown(ours["items"], theirs["items"], f"{at}[]")
    options = [theirs, *theirs.get("anyOf", ()), *theirs.get("oneOf", ()), *theirs.get("allOf", ())]
    for name, inner in ours.get("properties", {}).items():
        found = [o["properties"][name] for o in options if name in o.get("properties", {})]
        if not found:
            yield f"{at}.{name}"
        elif "properties" in inner or "items" in inner:
            yield from _unknown(inner, found[0], f"{at}.{name}")

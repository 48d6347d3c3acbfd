"""What GitHub's REST API takes and answers in the operations that we use, and what is wrong with a request to it.

The facts are those of GitHub's own OpenAPI description (github.com, API version 2022-11-28); ``test_contract`` holds
them against it where it is at hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema

PAGES = ("per_page", "page")
COMMENT = {"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]}


def answer(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object whose fields are these; fields that no answer has are an error."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
USER = answer(login=TEXT, type=TEXT)
SIDE = answer(label=TEXT, sha=TEXT)
COMMENTED = answer(id=NUMBER, body=TEXT, user=USER, html_url=TEXT, issue_url=TEXT)
PULL = answer(number=NUMBER, state=TEXT, head=SIDE, base=answer(sha=TEXT))
COMMIT = answer(sha=TEXT, parents={"type": "array", "items": answer(sha=TEXT)})
ARTIFACT = answer(id=NUMBER, name=TEXT, expired=FLAG)


@dataclass(frozen=True)
class Operation:
    """One operation: what it takes, and the part of its answer that the stand-in gives."""

    method: str
    path: str
    status: int
    query: tuple[str, ...] = ()
    body: dict[str, Any] | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    def fits(self, method: str, path: str) -> bool:
        """Tell whether a request is of this operation."""
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(self.path))
        return method == self.method and re.fullmatch(pattern, path) is not None


REPO = "/repos/{owner}/{repo}"
OPERATIONS = (
    Operation("GET", f"{REPO}/issues/{{issue_number}}/comments", 200, ("since", *PAGES), None, {"items": COMMENTED}),
    Operation("POST", f"{REPO}/issues/{{issue_number}}/comments", 201, (), COMMENT, COMMENTED),
    Operation("PATCH", f"{REPO}/issues/comments/{{comment_id}}", 200, (), COMMENT, COMMENTED),
    Operation("DELETE", f"{REPO}/issues/comments/{{comment_id}}", 204),
    Operation("GET", f"{REPO}/pulls/{{pull_number}}", 200, (), None, PULL),
    Operation(
        "GET", f"{REPO}/pulls", 200, ("state", "head", "base", "sort", "direction", *PAGES), None, {"items": PULL}
    ),
    Operation("GET", f"{REPO}/compare/{{basehead}}", 200, PAGES, None, answer(merge_base_commit=answer(sha=TEXT))),
    Operation(
        "GET",
        f"{REPO}/commits",
        200,
        ("sha", "path", "author", "committer", "since", "until", *PAGES),
        None,
        {"items": answer(sha=TEXT)},
    ),
    Operation(
        "GET",
        f"{REPO}/commits/{{ref}}",
        200,
        PAGES,
        None,
        COMMIT,
    ),
    Operation(
        "GET",
        f"{REPO}/actions/runs/{{run_id}}/artifacts",
        200,
        ("name", "direction", *PAGES),
        None,
        answer(total_count=NUMBER, artifacts={"type": "array", "items": ARTIFACT}),
    ),
    Operation("GET", f"{REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}", 302),
)


def wrong_request(method: str, target: str, body: object) -> str | None:
    """Return what GitHub would not understand of a request."""
    asked = urlsplit(target)
    one = operation(method, asked.path)
    if one is None:
        return f"{method} {asked.path}: no such operation"
    unknown = [name for name, _ in parse_qsl(asked.query, keep_blank_values=True) if name not in one.query]
    if unknown:
        return f"{method} {asked.path}: no such query: {unknown}"
    if one.body is None:
        return None if body is None else f"{method} {asked.path}: takes no body"
    return _invalid(f"{method} {asked.path}", body, one.body)


def wrong_answer(method: str, path: str, status: int, found: object) -> str | None:
    """Return what GitHub would never answer."""
    one = operation(method, path)
    if one is None or status >= 400:
        return None
    if status != one.status:
        return f"{method} {path}: answers {one.status}, never {status}"
    return _invalid(f"{method} {path} answers", found, one.answer)


def operation(method: str, path: str) -> Operation | None:
    """Return the operation of a request."""
    return next((o for o in OPERATIONS if o.fits(method, path)), None)


def _invalid(where: str, found: object, schema: dict[str, Any]) -> str | None:
    try:
        jsonschema.validate(found, schema)
    except jsonschema.ValidationError as error:
        return f"{where}: {error.message}"
    return None

"""The published JSON Schemas, made from the types of the documents.

``python -m trainscope.report.schema > schemas/findings-1.schema.json`` writes that of the report document anew,
``python -m trainscope.report.schema report > schemas/report-1.schema.json`` that of the case file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from trainscope.report.case_document import CASE_VERSION, CaseFile
from trainscope.report.document import SCHEMA_VERSION, Document, Part

MAJOR = SCHEMA_VERSION.split(".")[0]
KINDS: Mapping[str, tuple[type[Part], str, str]] = {
    "findings": (Document, "report document", MAJOR),
    "report": (CaseFile, "case file", CASE_VERSION.split(".")[0]),
}
"""Name of a document to its type, what it is called, and its major version."""


def schema_text(kind: str = "findings") -> str:
    """Return a schema as committed.

    Fields with a default are optional in it, and unknown fields are allowed: a document of any minor
    version, older or newer, is valid.
    """
    return published(kind, *KINDS[kind])


def published(kind: str, model: type[Part], title: str, major: str) -> str:
    """Return the schema of a document's type; `kind` stands in its id."""
    schema = model.model_json_schema(mode="validation")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trainscope:{kind}-{major}",
    }
    schema["title"] = f"trainscope {title}, version {major}"
    return json.dumps(head | schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text(*sys.argv[1:2]))

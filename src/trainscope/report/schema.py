"""The published JSON Schema of the report document, made from its types.

``python -m trainscope.report.schema > schemas/findings-1.schema.json`` writes it anew.
"""

from __future__ import annotations

import json
import sys

from trainscope.report.document import SCHEMA_VERSION, Document

MAJOR = SCHEMA_VERSION.split(".")[0]


def schema_text() -> str:
    """Return the schema as committed.

    Fields with a default are optional in it, and unknown fields are allowed: a document of any minor
    version, older or newer, is valid.
    """
    schema = Document.model_json_schema(mode="validation")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trainscope:findings-{MAJOR}",
    }
    schema["title"] = f"trainscope report document, version {MAJOR}"
    return json.dumps(head | schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())

"""The published JSON Schema of ``replay_config.json``, made from its types.

``python -m trainscope.replay.schema > schemas/replay-1.schema.json`` writes it anew.
"""

from __future__ import annotations

import json
import sys

from trainscope.replay.config import SCHEMA_VERSION, ReplayConfig

MAJOR = SCHEMA_VERSION.split(".")[0]


def schema_text() -> str:
    """Return the schema as committed; unknown fields are allowed, for files of any minor version."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:trainscope:replay-{MAJOR}"}
    schema = ReplayConfig.model_json_schema(mode="validation")
    schema["title"] = f"trainscope replay configuration, version {MAJOR}"
    schema["required"] = ["skip_batches"]
    return json.dumps(head | schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())

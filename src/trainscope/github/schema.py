"""The published JSON Schema of ``check.json``, made from its types.

``python -m trainscope.github.schema > schemas/check-1.schema.json`` writes it anew.
"""

from __future__ import annotations

import sys

from trainscope.github.result import VERSION, CheckResult
from trainscope.report.schema import published


def schema_text() -> str:
    """Return the schema as committed; unknown fields are allowed, for files of any minor version."""
    return published("check", CheckResult, "result of a check", VERSION.split(".")[0])


if __name__ == "__main__":
    sys.stdout.write(schema_text())

"""Files that were begun and never finished."""

from __future__ import annotations

import os
import time
from pathlib import Path

from trainscope.core.files import ABANDONED_SECONDS, sweep


def test_only_what_nobody_has_written_to_for_a_minute_is_removed(tmp_path: Path) -> None:
    old, young = tmp_path / "old.part", tmp_path / "young.part"
    for path, age in ((old, ABANDONED_SECONDS + 5), (young, ABANDONED_SECONDS - 30)):
        path.write_text("half")
        os.utime(path, (time.time() - age,) * 2)
    sweep([old, tmp_path / "taken_away_meanwhile.part", young])
    assert [path.name for path in tmp_path.iterdir()] == ["young.part"]

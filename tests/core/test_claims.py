"""A folder of outputs belongs to one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainscope.core.claims import claimed
from trainscope.core.errors import StoreError

HOLD = "import sys\nfrom pathlib import Path\nfrom trainscope.core.claims import claimed\n" + (
    "with claimed(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_a_folder_that_another_process_writes_to_is_refused_until_it_ends(tmp_path: Path):
    folder = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another run writes there now"), claimed(folder):
            raise AssertionError("not ours")
        other.kill()
    with claimed(folder):
        assert list(folder.iterdir()) == []


def test_one_after_the_other_is_no_conflict_and_faults_inside_are_not_the_folders(tmp_path: Path):
    with pytest.raises(FileNotFoundError), claimed(tmp_path):
        (tmp_path / "nowhere" / "file").read_text(encoding="utf-8")
    with claimed(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="file"), claimed(tmp_path / "file" / "out"):
        raise AssertionError("not ours")

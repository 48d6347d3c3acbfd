"""What a hostile or damaged artifact can try, and what becomes of it."""

from __future__ import annotations

import io
import json
import shutil
import zipfile

import pytest
from tests.github.archives import archive

from trainscope.core.errors import ReadError
from trainscope.github.artifact import DOCUMENT, read_folder, read_zip
from trainscope.github.result import FILE


@pytest.fixture
def files(left) -> dict[str, bytes]:
    names = [FILE, DOCUMENT, *(p.relative_to(left).as_posix() for p in left.glob("records/*/record.js"))]
    return {name: (left / name).read_bytes() for name in names}


def test_a_good_archive_is_read(files, bundle):
    assert read_zip(archive(files), "a") == bundle


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "C:x", "a\\..\\x"])
def test_an_archive_with_a_name_that_leads_out_of_it_is_refused(files, name):
    with pytest.raises(ReadError, match="leads out"):
        read_zip(archive(files | {name: b""}), "a")


def test_an_archive_with_a_link_is_refused(files):
    with pytest.raises(ReadError, match="link"):
        read_zip(archive(files, {"report.md": "/etc/passwd"}), "a")


def changed(files: dict[str, bytes], **values: object) -> dict[str, bytes]:
    return files | {DOCUMENT: json.dumps(json.loads(files[DOCUMENT]) | values).encode()}


DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda f: changed(f, runs=None), "runs"),
        (lambda f: changed(f, schema_version="2.0"), "schema_version"),
        (lambda f: changed(f, extra="x" * 30_000), "characters"),
        (lambda f: changed(f, extra=10**30), "64 bits"),
        (lambda f: changed(f, extra=[[0] * 1000] * 1100), "too many values"),
        (lambda f: f | {DOCUMENT: DEEP}, "not JSON|nested"),
        (lambda f: f | {DOCUMENT: b'{"a": NaN}'}, "not JSON"),
        (lambda f: f | {DOCUMENT: b"1" * 5000}, "not JSON"),
        (lambda f: f | {DOCUMENT: b" " * (9 << 20)}, "more than 8192 KiB"),
        (lambda f: f | {FILE: b"{}"}, "verdict"),
        (lambda f: f | {FILE: b'{"verdict": "pass", "exit_code": 0, "key": "../x"}'}, "key"),
        (lambda f: f | {FILE: b'{"verdict": "pass", "exit_code": 0, "head": "@octocat"}'}, "head"),
        (lambda f: {DOCUMENT: f[DOCUMENT]}, "holds no check.json"),
    ],
    ids=range(13),
)
def test_an_archive_that_is_not_ours_is_one_clear_line(files, broken, said):
    with pytest.raises(ReadError, match=said) as caught:
        read_zip(archive(broken(files)), "artifact trainscope")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_archive_are_one_clear_line(files):
    for raw in (b"", b"PK\x03\x04garbage", archive(files)[:2000]):
        with pytest.raises(ReadError, match="no whole archive"):
            read_zip(raw, "a")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_of_any_compression_is_one_clear_line(files, method):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", method) as made:
        for name, content in files.items():
            made.writestr(name, content)
        at = made.getinfo(DOCUMENT).header_offset + 400
    whole = bytearray(raw.getvalue())
    whole[at : at + 40] = b"\xa5" * 40
    with pytest.raises(ReadError, match="no whole archive") as caught:
        read_zip(bytes(whole), "artifact trainscope")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_what_is_too_much_for_an_artifact_is_no_damage_in_our_own_folder(left, files, tmp_path):
    own = shutil.copytree(left, tmp_path / "own")
    document = json.loads(files[DOCUMENT])
    document["runs"][0]["metrics"][0]["name"] = "m" * 30_000
    document["runs"] *= 1 + (9 << 20) // len(files[DOCUMENT])
    (own / DOCUMENT).write_text(json.dumps(document))
    assert len(read_folder(own).document.runs) == len(document["runs"])
    with pytest.raises(ReadError, match="has more than 8192 KiB"):
        read_zip(archive(files | {DOCUMENT: (own / DOCUMENT).read_bytes()}), "a")


def test_a_record_that_is_damaged_costs_the_curve_and_nothing_else(files):
    name = next(n for n in files if n.startswith("records/"))
    read = read_zip(archive(files | {name: b"tsRun({alert(1)});\n"}), "a")
    assert read.records == ()
    assert len(read.dropped) == 1
    assert read.document is not None

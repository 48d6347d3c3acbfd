from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from trainscope.core.errors import ReadError
from trainscope.readers.decode import decode, decode_file, decompress

TEXT = "step,loss\n1,2.5\n2,2.25\n"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_bytes_are_unpacked_by_their_first_bytes(pack) -> None:
    assert decode_file(pack(TEXT.encode()), "x").data == TEXT.encode()


def test_concatenated_gzip_members_are_all_unpacked() -> None:
    assert decompress(gzip.compress(b"one\n") + gzip.compress(b"two\n"))[0] == b"one\ntwo\n"


def test_a_cut_gzip_gives_what_it_holds_and_says_so() -> None:
    rows = "".join(f"{i},{i * i % 97}\n" for i in range(5000))
    found = decode_file(gzip.compress(rows.encode())[:-2000], "x.gz")
    assert rows.startswith(found.data.decode())
    assert len(found.data) > 1000
    assert [note.kind for note in found.notes] == ["truncated"]


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_unpacking_stops_soon_after_its_limit(pack) -> None:
    data, _, over = decompress(pack(bytes(64 << 20)), limit=1 << 20)
    assert over
    assert len(data) < 32 << 20


def test_a_file_that_unpacks_to_too_much_is_refused_in_one_line() -> None:
    with pytest.raises(ReadError, match=r"^big\.gz: holds more than 1 MiB of text; cut it into smaller files$"):
        decode_file(gzip.compress(bytes(3 << 20)), "big.gz", limit=1 << 20)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8"])
def test_unicode_encodings_give_the_same_text(encoding: str) -> None:
    text = TEXT.replace("loss", "verlust_µ")
    assert decode_file(text.encode(encoding), "x").data.decode() == text


def test_bytes_that_are_not_utf8_are_latin1_with_a_note() -> None:
    found = decode_file("époque,loss\n".encode("latin-1"), "x")
    assert found.data.decode() == "époque,loss\n"
    assert [note.kind for note in found.notes] == ["encoding"]


def test_old_mac_line_ends_become_newlines() -> None:
    assert decode_file(b"a,b\r1,2\r", "x").data == b"a,b\n1,2\n"


def test_nul_bytes_of_a_crash_are_removed_with_a_note() -> None:
    found = decode_file(TEXT.encode() + bytes(5), "x")
    assert found.data == TEXT.encode()
    assert [(note.kind, note.count) for note in found.notes] == [("nul_bytes", 5)]


def test_machine_code_is_binary() -> None:
    assert decode_file(bytes(range(256)) * 20, "x").binary


def test_a_broken_byte_among_characters_of_utf8_leaves_the_others_as_they_are() -> None:
    text = decode("шаг 1 → 2.5\n".encode() * 3 + b"\xff\n")
    assert text.data.decode() == "шаг 1 → 2.5\n" * 3 + "\ufffd\n"
    (note,) = text.notes
    assert (note.kind, note.count) == ("encoding", 1)


def test_dashes_of_windows_are_no_control_codes() -> None:
    text = decode("step 1 – loss “2.5” é".encode("cp1252"))
    assert text.data.decode() == "step 1 – loss “2.5” é"
    assert "Windows-1252" in text.notes[0].message


def test_a_byte_that_windows_does_not_know_is_read_as_latin_1() -> None:
    text = decode(b"caf\xe9 \x81")
    assert text.data.decode() == "café \x81"
    assert "Latin-1" in text.notes[0].message

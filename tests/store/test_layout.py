import json
from pathlib import Path

import numpy as np
import pytest

from store.runs import config
from trainscope.store import layout
from trainscope.store.block import LayerBlock
from trainscope.store.reader import RunReader
from trainscope.store.writer import RunWriter

HOSTILE = (
    "",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "aux",
    "CON.weight",
    "with space",
    "new\nline",
    "nul\0byte",
    "%2F",
    "слой.вес",
    "层.权重",
    "🤖" * 40,
    "e\u0301",
    "\u00e9",
    "\ud800 lone surrogate",
    "<script>alert(1)</script>",
    "Weight",
    "weight",
    "WEIGHT",
    "x" * 200,
    "x" * 4000,
    "x" * 4000 + "y",
    "layer~0123456789abcdef",
    ".hidden",
    "a.part",
)
SHARED = Path(__file__).parents[3] / "shared" / "cases" / "hostile_names.json"


def names_in(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [name for item in value.values() for name in names_in(item)]
    return [name for item in value for name in names_in(item)] if isinstance(value, list) else []


def check_round_trip(tmp_path, names):
    writer = RunWriter.create(config(tmp_path), meta={})
    columns = {"grad_l2_norm": np.arange(len(names), dtype=float)}
    for step in range(3):
        writer.append(step, {"loss": 1.0}, LayerBlock(names, columns))
    writer.mark_spike(2, 9.0)
    writer.flush()
    killed = RunReader(writer.path)
    cleaned = tuple(layout.clean(name) for name in names)
    assert killed.layers() == cleaned
    writer.close()
    (writer.path / "manifest.json").unlink()  # the files alone must say what they are about
    files = [p.name for p in (writer.path / "layers").iterdir()]
    assert len({name.lower() for name in files}) == len(names)
    assert all(len(name.encode()) < 240 for name in files)
    assert {p.name for p in tmp_path.iterdir()} == {"a"}
    reader = RunReader(writer.path)
    assert set(reader.layers()) == set(cleaned)
    for j, name in enumerate(cleaned):
        assert reader.layer_points(name, "grad_l2_norm")[1].tolist() == [float(j)] * 3


def test_names_of_any_length_and_script_come_back_whole(tmp_path):
    check_round_trip(tmp_path, HOSTILE)


@pytest.mark.skipif(not SHARED.is_file(), reason="needs ../shared/cases/hostile_names.json")
def test_the_shared_hostile_names_come_back_whole(tmp_path):
    found = tuple(dict.fromkeys(names_in(json.loads(SHARED.read_text()))))
    assert len(found) > 5
    check_round_trip(tmp_path, found)


def test_ordinary_names_stay_readable():
    assert layout.stem("blocks.0.attn.qkv.weight") == "blocks.0.attn.qkv.weight"
    assert layout.stem("a/b") == "a%2Fb"


def test_a_shortened_name_keeps_its_start_and_never_cuts_an_escape():
    for name in ("слой" * 100, "x" * 78 + "ж" * 100):
        stem = layout.stem(name)
        assert len(stem) < 110
        head = stem.split("~")[0]
        assert all(len(part) >= 2 for part in head.split("%")[1:])

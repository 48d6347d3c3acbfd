import json

import pytest

from trainscope.core.errors import ReadError
from trainscope.site import bundle
from trainscope.site.archive import archived
from trainscope.site.bundle import MAX_BYTES

from .conftest import hostile
from .runs import layers, record, rich


def test_a_record_reads_back_as_it_was(rich_record):
    assert bundle.from_text(bundle.to_text(rich_record), "x") == rich_record


def test_the_same_run_gives_the_same_bytes(rich_record):
    assert bundle.to_text(record(rich())) == bundle.to_text(rich_record)


def test_a_record_holds_what_its_page_shows(rich_record):
    assert rich_record.curves[0].name == "train/loss"
    assert {m.title for m in rich_record.layers} == {"grad_l2_norm", "act_kurtosis"}
    assert rich_record.shares[0].rows == [str(i) for i in range(8)]
    assert len(rich_record.weights) == 6
    assert "spikes" in {f.detector for f in rich_record.entry.findings}
    assert rich_record.about.branch == "main"
    assert rich_record.about.started == 1_790_000_000


def test_no_name_ends_the_script_that_a_record_stands_in(hostile_names):
    text = bundle.to_text(record(hostile(hostile_names)))
    assert "<" not in text
    assert text.isascii()


def test_a_run_of_endless_names_stays_within_the_limit(hostile_names):
    long = {f"{i}" + "y" * 9000: "z" * 9000 for i in range(300)}
    table = layers(tuple(f"{'layer' * 3000}{i}" for i in range(90)))
    one = record(
        rich("n" * 10_000, layer_table=table, metrics=tuple(f"{'m' * 5000}{i}" for i in range(90)), config=long)
    )
    assert len(bundle.to_text(one)) <= MAX_BYTES
    assert one.left_out["settings"] == 100
    assert one.left_out["curves"] > 60


def test_an_archived_record_is_a_fraction_and_keeps_its_findings_and_extremes(rich_record):
    small = archived(rich_record)
    assert len(bundle.to_text(small)) < 0.4 * len(bundle.to_text(rich_record))
    assert small.entry.findings == rich_record.entry.findings
    assert small.curves[0].most == rich_record.curves[0].most
    assert max(v for v in small.curves[0].high if v) == max(v for v in rich_record.curves[0].middle if v)
    assert archived(small) is small


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a whole record"),
        ("tsRun({", "not a whole record"),
        ("tsRun({]);\n", "a damaged record"),
        ("tsRun([]);\n", "of version ''"),
        ('tsRun({"version":"2"});\n', "of version '2'; this trainscope reads 1"),
        ('tsRun({"version":"1"});\n', "a damaged record of a run (tool: field required)"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(text, reason):
    with pytest.raises(ReadError, match="x: ") as caught:
        bundle.from_text(text, "x")
    assert reason in str(caught.value)


def damage(data, path, value):
    *way, last = path.split(".")
    at = data
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) else last] = value


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("curves.0.middle", [1.0], "its columns have different lengths"),
        ("curves.0.middle.0", float("nan"), "a damaged record"),
        ("curves.0.style", "nope", "curves.0.style"),
        ("curves.0.step.0", -(10**40), "curves.0.step.0"),
        ("curves.0.step.0", 10**9, "its steps are out of order"),
        ("curves.0.step", [], "its columns have different lengths"),
        ("main_incident", 99, "main_incident is none of its incidents"),
        ("about.started", 10**17, "about.started"),
        ("entry.findings.0.start_step", 10**30, "a step has more than 64 bits"),
        ("entry.steps.first", 10**9, "its last step comes before its first"),
        ("layers.0.cells", "AAAA", "its cells are not rows times columns"),
        ("layers.0.cells", "?!", "layers.0"),
        ("layers.0.low", -1.0, "its limits are no limits"),
        ("layers.0.peak", [], "its columns have different lengths"),
        ("weights.0.divergence.0.0", "NaN", "weights.0.divergence.0.0"),
        ("layers.0.high", "Infinity", "layers.0.high"),
        ("weights.0.share", [], "it has no histogram for each step"),
        ("weights.0.divergence.0", [0.0], "its columns have different lengths"),
    ],
)
def test_a_record_that_does_not_hold_together_is_refused_and_says_where(rich_record, path, value, reason):
    data = json.loads(bundle.to_text(rich_record)[6:-3])
    damage(data, path, value)
    with pytest.raises(ReadError) as caught:
        bundle.from_text(f"tsRun({json.dumps(data)});\n", "x")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_record_that_is_too_large_is_refused_before_it_takes_the_memory(tmp_path):
    path = tmp_path / bundle.NAME
    path.write_text("tsRun({" + " " * bundle.MAX_READ)
    with pytest.raises(ReadError, match="has more than 8 MiB"):
        bundle.read(path)


def test_a_seed_of_more_than_64_bits_is_no_damage():
    config = {"seed": 2**64 - 1, "big": 10**30}
    one = record(rich(config=config))
    assert bundle.from_text(bundle.to_text(one), "x").entry.config["seed"] == 2**64 - 1


def test_a_record_whose_id_is_a_path_is_refused(rich_record):
    text = bundle.to_text(rich_record)
    data = json.loads(text[6:-3])
    data["entry"]["id"] = "../../etc"
    with pytest.raises(ReadError, match="is no run id"):
        bundle.from_text(f"tsRun({json.dumps(data)});\n", "x")

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from trainscope.detectors import DETECTORS
from trainscope.detectors.measured import measured
from trainscope.diagnosis.compare import COMPARERS


def test_every_detector_is_listed_with_what_it_needs(cli):
    lines = cli("detectors").out.splitlines()
    assert lines[0].split() == ["id", "on", "finds", "needs"]
    assert [line.split()[0] for line in lines[1:]] == [one.id for one in (*DETECTORS, *COMPARERS)]
    assert all(line.split()[1] in {"yes", "no"} for line in lines[1:])


def test_the_list_shows_what_the_settings_turn_off_or_cap(cli, tmp_path: Path):
    (tmp_path / "trainscope.toml").write_text(
        'ignore = ["spikes"]\n[detectors.plateau]\nenabled = false\n[detectors.non_finite]\nseverity = "info"\n'
    )
    on = {line.split()[0]: line.split()[1] for line in cli("detectors").out.splitlines()}
    assert (on["spikes"], on["plateau"], on["non_finite"], on["divergence"]) == ("no", "no", "info", "yes")


@pytest.mark.parametrize("detector", [*DETECTORS, *COMPARERS], ids=lambda d: d.id)
def test_a_detector_is_explained_with_its_page_and_every_parameter(cli, detector):
    out = cli("explain", detector.id).out
    assert out.startswith(detector.page.strip())
    for name, default in detector.parameters().items():
        (line,) = [text for text in out.splitlines() if text.startswith(f"    {name} = ")]
        value = tomllib.loads(line)[name]
        assert value == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.parametrize("detector", [*DETECTORS, *COMPARERS], ids=lambda d: d.id)
def test_the_explained_settings_are_accepted(cli, tmp_path: Path, detector):
    out = cli("explain", detector.id).out
    table = out[out.index("\nSettings\n") + len("\nSettings\n") :]
    (tmp_path / "trainscope.toml").write_text(table)
    result = cli("detectors")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("detector", [*DETECTORS, *COMPARERS], ids=lambda d: d.id)
def test_every_parameter_says_what_it_means(cli, detector):
    lines = cli("explain", detector.id).out.splitlines()
    for name in detector.parameters():
        (at,) = [n for n, line in enumerate(lines) if line.startswith(f"    {name} = ")]
        assert lines[at - 1].startswith("    # "), f"{name} has no meaning"


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.id)
def test_a_detector_is_explained_with_how_often_it_was_wrong(cli, detector):
    out = cli("explain", detector.id).out
    said = out[out.index("\nMeasured\n") : out.index("\nSettings\n")]
    flat = " ".join(said.split())
    for line in measured(detector.id):
        assert line in flat
    assert max(map(len, said.splitlines())) <= 120


def test_an_unknown_detector_gives_the_nearest_one(cli):
    result = cli("explain", "spike")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: no detector is called 'spike'; did you mean 'spikes'?\n"

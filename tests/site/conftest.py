from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from trainscope.site.archive import archived
from trainscope.site.serve import server_for

from .builds import LOGS, made
from .runs import Layers, layers, record, rich, write

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
CASES = Path(__file__).parents[2].parent / "shared" / "cases"


@pytest.fixture(scope="session")
def hostile_names():
    path = CASES / "hostile_names.json"
    if not path.is_file():
        pytest.skip("needs ../shared/cases/hostile_names.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def rich_record():
    return record(rich())


@pytest.fixture(scope="session")
def built(tmp_path_factory, rich_record, hostile_names):
    """Return a site with a rich run, a stable one, a hostile one and an archived one."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from trainscope.core.settings import Settings
    from trainscope.site.build import Options, build

    home = tmp_path_factory.mktemp("site")
    records = [rich_record, record(rich("stable-twin", spike=None, seed=1)), record(rich("other-spike", seed=2))]
    records.append(record(hostile(hostile_names)))
    records.append(archived(record(rich("an old run", seed=-9))))
    write(home / "records", records)
    done = build([str(home / "records")], home / "out", Settings(), Options(title="Team runs", jobs=2))
    assert done.undrawn == 0
    return home / "out"


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(built):
    """Return the site's address on a server."""
    with server_for(built, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def logs(tmp_path):
    """Return a folder with two logs that tell of different ends."""
    copy_logs(tmp_path / "logs")
    return tmp_path / "logs"


def copy_logs(home):
    home.mkdir()
    for name in ("loss_spike.jsonl", "healthy.jsonl"):
        shutil.copy(LOGS / name, home)


@pytest.fixture(scope="session")
def first_site(tmp_path_factory):
    """Return the site of these two logs, built once."""
    home = tmp_path_factory.mktemp("first")
    copy_logs(home / "logs")
    made(home / "logs", home / "site")
    return home / "site"


@pytest.fixture
def site(first_site, tmp_path):
    """Return a copy of the site of the two logs, to build on."""
    return shutil.copytree(first_site, tmp_path / "site")


def hostile(names):
    """Return a run whose every name is hostile, each in all places that a log can name."""
    cut = [name for name in names if name.strip()]
    table = layers(tuple(dict.fromkeys(cut[:60])))
    assert isinstance(table, Layers)
    return rich(
        "</script><script>alert(1)</script>\u202e{{ 7*7 }}",
        seed=5,
        layer_table=table,
        metrics=tuple(cut),
        config={name: name for name in cut},
    )

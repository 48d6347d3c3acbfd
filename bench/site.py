"""What a site costs: bytes of a page, CPU of a build, growth with steps, the list of ten thousand runs.

    python bench/site.py [--browser]

CPU seconds are those of this process and of the drawing processes; wall time is not looked at. With ``--browser``
(Python Playwright and a Chromium) also: first paint of a run's page, and sorting and filtering ten thousand runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np

from trainscope.core.settings import Settings
from trainscope.site.build import Built, Options, build

STEPS = (1_000, 10_000, 100_000, 1_000_000)
METRICS = 12
PAGE_LIMIT, CPU_LIMIT, LIST_LIMIT, PAINT_LIMIT = 60_000, 1.5, 100.0, 500.0
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def cpu() -> float:
    """Return the CPU seconds of this process and of its ended children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def log(path: Path, steps: int, seed: int) -> None:
    """Write a log of twelve metrics with two spikes as CSV."""
    rng = np.random.default_rng(seed)
    step = np.arange(steps)
    loss = 2 + 3 * np.exp(-step / (steps / 8)) + rng.normal(0, 0.02, steps)
    for place in (0.42, 0.71):
        loss[int(place * steps) : int(place * steps) + 4] += 6
    columns = {"train/loss": loss, "train/grad_norm": np.exp(rng.normal(0, 0.2, steps))}
    columns |= {f"aux/metric_{i}": rng.normal(i, 1, steps) for i in range(METRICS - 2)}
    table = np.column_stack([step, *columns.values()])
    header = ",".join(["step", *columns])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt=["%d", *["%.6g"] * METRICS])


def measured(paths: list[Path], out: Path) -> tuple[float, Built]:
    before = cpu()
    built = build([str(p) for p in paths], out, Settings(), Options(jobs=1))
    return cpu() - before, built


def page_bytes(site: Path) -> int:
    """Return the compressed bytes of a run's page with its style sheet and script: all before "Explore"."""
    (page,) = site.glob("runs/*/index.html")
    files = (page, site / "assets/site.css", site / "assets/site.js")
    return sum(len(gzip.compress(f.read_bytes(), 9)) for f in files)


def growth(home: Path) -> None:
    print("| steps | page, KB gzip | CPU of reading, judging and drawing, s | unchanged, s |")
    print("| --- | --- | --- | --- |")
    for steps in STEPS:
        path = home / f"{steps}.csv"
        log(path, steps, 0)
        first, _ = measured([path], home / f"site-{steps}")
        again, built = measured([path], home / f"site-{steps}")
        assert (built.read, built.drawn) == (0, 0)
        size = page_bytes(home / f"site-{steps}")
        print(f"| {steps:,} | {size / 1000:.1f} | {first:.2f} | {again:.2f} |", flush=True)
        assert size <= PAGE_LIMIT, size


def drawing(home: Path, runs: int = 6) -> None:
    """Print the CPU seconds that one more run of twelve charts costs: reading and judging apart."""
    for seed in range(runs + 1):
        log(home / f"run-{seed}.csv", 2_000, seed)
    one, _ = measured([home / "run-0.csv"], home / "one")
    many, _ = measured([home / f"run-{seed}.csv" for seed in range(runs + 1)], home / "many")
    records, _ = measured([home / "one" / "runs"], home / "one-again")
    all_records, _ = measured([home / "many" / "runs"], home / "many-again")
    whole, drawn = (many - one) / runs, (all_records - records) / runs
    print(f"one more run of {METRICS} charts: {whole:.2f} s CPU from its log, {drawn:.2f} s from its record")
    sizes = [sum(f.stat().st_size for f in p.iterdir()) for p in (home / "many" / "runs").iterdir()]
    print(f"on disk: {statistics.mean(sizes) / 1000:.0f} KB a run")
    assert drawn <= CPU_LIMIT, drawn
    assert files(home / "many") == files(home / "many-again")


def files(site: Path) -> dict[str, bytes]:
    found = {p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if not name.startswith(".")}


def listing(home: Path, count: int = 10_000) -> Path:
    """Return a site whose list has ten thousand rows, made from one row."""
    site = home / "listed"
    shutil.copytree(home / "one", site)
    text = (site / "runs.js").read_text(encoding="utf-8")
    columns = json.loads(text[len("tsRuns(") : -len(");\n")])
    rng = np.random.default_rng(0)
    big = {key: values * count for key, values in columns.items()}
    big["id"] = [f"{i:012x}" for i in range(count)]
    big["name"] = [f"run-{i:05d}-{'abc'[i % 3]}" for i in range(count)]
    big["loss"] = np.round(rng.normal(2, 0.1, count), 4).tolist()
    big["status"] = rng.choice(["pass", "fail", "error"], count).tolist()
    (site / "runs.js").write_text(f"tsRuns({json.dumps(big, separators=(',', ':'))});\n", encoding="utf-8")
    size = len(gzip.compress((site / "runs.js").read_bytes(), 9))
    print(f"runs.js of {count:,} runs: {size / 1000:.0f} KB gzip")
    return site


TIMED = """async () => {
  const took = async act => {
    const from = performance.now();
    act();
    document.body.offsetHeight;
    return performance.now() - from;
  };
  const filter = document.getElementById('filter');
  const typed = text => () => { filter.value = text; filter.dispatchEvent(new Event('input')); };
  const found = {};
  for (const key of ['name', 'loss', 'started', 'findings']) {
    found[`sort by ${key}`] = await took(() => document.querySelector(`th[data-key=${key}] button`).click());
  }
  found['filter'] = await took(typed('run-07'));
  found['filter off'] = await took(typed(''));
  return found;
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def browsing(home: Path, site: Path, repeats: int = 5) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        times: dict[str, list[float]] = {}
        for _ in range(repeats):
            page = browser.new_page()
            page.goto((site / "index.html").as_uri())
            for name, took in page.evaluate(TIMED).items():
                times.setdefault(name, []).append(took)
            page.close()
        for name, took in times.items():
            print(f"{name}: {min(took):.0f} ms at best, {statistics.median(took):.0f} in the median of {repeats}")
        (run,) = (home / "one").glob("runs/*/index.html")
        paints = []
        for _ in range(repeats):
            page = browser.new_page()
            page.goto(run.as_uri())
            page.wait_for_timeout(300)
            paints.append(page.evaluate(PAINT))
            page.close()
        print(f"first paint of a run: {min(paints):.0f} ms at best, {statistics.median(paints):.0f} in the median")
        browser.close()
    # At best: a busy machine only adds.
    assert max(min(took) for took in times.values()) <= LIST_LIMIT
    assert min(paints) <= PAINT_LIMIT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", action="store_true", help="measure in a browser too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        growth(home)
        drawing(home)
        site = listing(home)
        if options.browser:
            browsing(home, site)


if __name__ == "__main__":
    main()

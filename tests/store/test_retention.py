import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainscope.store import retention, rolling, schema, stream

STEPS = st.lists(st.integers(0, 5000), min_size=1, max_size=300, unique=True).map(sorted)


@given(STEPS, st.integers(1, 500), st.integers(1, 50), st.randoms())
def test_the_window_stays_whole_and_every_older_stretch_keeps_exactly_its_richest(steps, window, factor, rng):
    step = np.array(steps)
    richness = np.array([rng.randrange(4) for _ in steps])
    mask = retention.keep(step, richness, window=window, factor=factor, newest=int(step[-1]))
    horizon = step[-1] - window
    assert mask[step > horizon].all()
    old = {}
    for s, r in zip(step[step <= horizon], richness[step <= horizon], strict=True):
        old.setdefault(s // factor, []).append((-r, s))
    assert sorted(min(found)[1] for found in old.values()) == step[mask & (step <= horizon)].tolist()


@given(STEPS, st.integers(1, 50))
def test_thinning_twice_is_thinning_once(steps, factor):
    step = np.array(steps)
    same = np.zeros(len(step), dtype=int)
    once = step[retention.keep(step, same, window=10, factor=factor, newest=6000)]
    again = retention.keep(once, same[: len(once)], window=10, factor=factor, newest=6000)
    assert again.all()


def test_stretches_double_until_few_enough_steps_stay():
    step = np.arange(1_000_000)
    mask = retention.keep(step, np.zeros(len(step), int), window=500, factor=10, newest=999_999)
    old = step[mask][:-500]
    assert retention.MAX_OLD_STEPS / 2 < len(old) <= retention.MAX_OLD_STEPS
    assert set(np.diff(old)) == {320}


@pytest.mark.slow
def test_the_scalars_are_thinned_a_little_at_each_turn_while_rows_come_in(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "MAX_OLD_STEPS", 40)
    monkeypatch.setattr(rolling, "BATCHES_AT_ONCE", 3)
    table = rolling.RollingTable(tmp_path / "t.arrow", schema.global_schema(), window=50, factor=10)

    def add(step):
        values = {"step": step, "loss": float("nan") if step == 33 else float(step)}
        row = [pa.array([values.get(field.name)], field.type) for field in table.schema]
        table.append(pa.RecordBatch.from_arrays(row, schema=table.schema))

    pieces, job, longest = 0, None, 0
    for step in range(400):
        add(step)
        longest = max(longest, stream.read(table.path).num_rows)
        job = job or table.thinning()
        if job is not None:
            pieces += 1
            job = None if next(job, "done") == "done" else job
    step = stream.read(table.path).column("step").to_numpy()
    assert pieces > 50
    assert longest < 2 * 50 + 40 + 150  # what comes in while it is thinned
    assert np.all(np.diff(step) > 0)
    assert step[-50:].tolist() == list(range(350, 400))
    assert 33 in step  # the step with a NaN outlives its neighbours
    assert {s // 100 for s in step.tolist()} == {0, 1, 2, 3}


def test_a_file_that_is_rewritten_while_it_is_thinned_is_left_to_the_next_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "MAX_OLD_STEPS", 10)
    monkeypatch.setattr(rolling, "BATCHES_AT_ONCE", 1)
    table = rolling.RollingTable(tmp_path / "t.arrow", schema.plugin_schema(), window=10, factor=2)
    for step in range(40):
        rows = {"step": [step], "plugin": ["p"], "metric": ["m"], "value": [1.0]}
        table.append(pa.RecordBatch.from_pydict(rows, schema=table.schema))
    job = table.thinning()
    for _ in range(45):
        next(job)
    table.drop_from(30)
    for _ in job:
        pass
    assert stream.read(table.path).column("step").to_pylist() == list(range(30))
    assert [p.name for p in tmp_path.iterdir()] == ["t.arrow"]

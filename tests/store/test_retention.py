import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainscope.store import retention

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

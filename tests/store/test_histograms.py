"""Weight histograms out of layer files and of the journal."""

import numpy as np

from trainscope.core.run import HistogramTable
from trainscope.readers import read_runs
from trainscope.store.reader import RunReader

from .runs import NAMES, make


def check(path, steps):
    reader = RunReader(path)
    found = reader.layer_histograms(NAMES[0])
    assert found.step.tolist() == list(steps)
    assert found.counts.tolist() == [[float(s)] * 4 for s in steps]
    assert np.array_equal(found.edges, np.tile(np.linspace(-1, 1, 5), (len(steps), 1)))
    # Edges of NaN stand for a layer without a histogram.
    assert len(reader.layer_histograms(NAMES[-1]).step) == 0
    assert len(reader.layer_histograms("nobody").step) == 0


def test_a_closed_run_has_its_histograms_in_layer_files(tmp_path):
    writer = make(tmp_path, range(200))
    writer.close()
    check(writer.path, (0, 50, 100, 150))


def test_a_run_that_is_still_written_has_them_in_the_journal(tmp_path):
    writer = make(tmp_path, range(200))
    writer.flush()
    check(writer.path, (0, 50, 100, 150))
    writer.close()


def test_a_long_run_has_them_in_both(tmp_path):
    writer = make(tmp_path, range(400), full_resolution_window=100, decimation_factor=10)
    writer.flush()
    reader = RunReader(writer.path)
    assert reader.layer_histograms(NAMES[0]).step[-3:].tolist() == [250, 300, 350]
    writer.close()


def test_a_recorded_run_offers_them(tmp_path):
    writer = make(tmp_path, range(60))
    writer.close()
    (run,) = read_runs(writer.path)
    assert isinstance(run.layers, HistogramTable)
    assert run.layers.histograms(NAMES[0]).step.tolist() == [0, 50]


def test_two_runs_read_in_turn_do_not_mix(tmp_path):
    one, two = make(tmp_path, range(60), run_name="one"), make(tmp_path, range(30), run_name="two")
    one.close(), two.close()
    readers = [RunReader(one.path), RunReader(two.path)]
    for _ in range(2):
        lengths = [len(reader.layer_points(NAMES[0], "grad_l2_norm")[0]) for reader in readers]
        assert lengths == [60, 30]

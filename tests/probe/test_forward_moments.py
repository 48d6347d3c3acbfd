"""What one forward of one module shows, where its output is cut into pieces."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.slow


def test_extremes_are_found_in_every_piece_and_anew_at_every_step(attach, stats):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)  # large outputs are cut, so that reducing them wakes no second thread
    try:
        model = nn.Sequential(nn.Unflatten(1, (10, 10)), nn.Linear(10, 1))  # what is not linear passes through
        probe = attach(model, [], activation_every=1)
        inputs = torch.zeros(1000, 100)
        inputs[0, 0], inputs[-1, -1] = -7.0, 9.0
        for factor in (1.0, 0.5):
            model(inputs * factor).sum().backward()
            (reading,) = probe.read([probe.measure()])
            got = stats(reading, "0")
            assert (got["act_min"], got["act_max"]) == (-7.0 * factor, 9.0 * factor)
    finally:
        torch.set_num_threads(threads)

"""The public interface: order of calls, what a step takes and returns, what is a spike."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

from tests.recorder.conftest import batch_of, columns, loss_of  # noqa: E402

from trainscope import TrainScope, TrainScopeConfig, load_config  # noqa: E402
from trainscope.core.errors import ConfigError, RecorderError  # noqa: E402

from .loops import run  # noqa: E402

pytestmark = pytest.mark.slow


def test_importing_the_package_loads_neither_torch_nor_pydantic():
    code = "import sys, trainscope; assert not {'torch', 'pydantic', 'numpy', 'pyarrow'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_public_name_is_an_attribute_error():
    import trainscope

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trainscope.nothing
    assert callable(load_config)


def test_attaching_twice_and_a_step_without_attaching_are_clear_errors(scope_of, training):
    scope = scope_of(*training)
    with pytest.raises(RecorderError, match=r"not attached: call scope\.attach"):
        scope.step(1.0)
    scope.attach()
    with pytest.raises(RecorderError, match="attached already"):
        scope.attach()
    scope.detach()
    scope.detach()
    with pytest.raises(RecorderError, match="not attached"):
        scope.step(1.0)


def test_a_wrong_detector_is_told_before_training(training):
    with pytest.raises(ConfigError, match="changepoint"):
        TrainScope(*training, TrainScopeConfig(detector="changepont"))
    with pytest.raises(ConfigError, match="threshold"):
        TrainScope(*training, TrainScopeConfig(detector={"name": "z_score", "treshold": 3.5}))


@pytest.mark.parametrize("kind", [float, torch.tensor, lambda v: torch.tensor([v], requires_grad=True)])
def test_the_loss_may_be_a_number_or_a_tensor(scope_of, training, kind):
    scope = scope_of(*training).attach()
    path = scope.session.path
    for value in (1.5, 2.5):
        scope.step(kind(value))
    scope.detach()
    assert columns(path / "global.arrow")["loss"] == [1.5, 2.5]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_a_spike_of_its_own(scope_of, training, bad):
    scope = scope_of(*training).attach()
    path = scope.session.path
    spikes = run(scope, *training, 12, loss_at=lambda s, v: bad if 5 <= s < 8 else v)
    scope.detach()
    assert [(s["step"], s["spike_score"], s["z_score"], s["batch_index"]) for s in spikes] == [
        (5, math.inf, math.inf, 5)
    ]
    found = columns(path / "global.arrow")
    assert str(found["loss"][5]) == str(bad)
    assert [i for i, flag in enumerate(found["is_spike"]) if flag] == [5]


def test_gradients_that_are_not_finite_are_a_spike(scope_of, training):
    model, optimizer = training
    scope = scope_of(model, optimizer).attach()
    loss_of(model, batch_of(0)).backward()
    assert scope.step(1.0) is None
    model.head.weight.grad[0, 0] = math.nan
    spike = scope.step(1.0)
    assert spike["detector"] == "non_finite gradient"
    scope.detach()


def test_the_raw_loss_is_kept(scope_of, training):
    scope = scope_of(*training).attach()
    path = scope.session.path
    values = [3.0, 1e30, -5.0, 2.0]
    for value in values:
        scope.step(value)
    scope.detach()
    assert columns(path / "global.arrow")["loss"] == values


def test_a_user_given_step_number_is_kept(scope_of, training):
    scope = scope_of(*training).attach()
    path = scope.session.path
    for step in (100, 200, 300):
        scope.step(1.0, step=step, batch_index=7)
    scope.detach()
    found = columns(path / "global.arrow")
    assert (found["step"], found["batch_index"]) == ([100, 200, 300], [7, 7, 7])


def test_a_resumed_run_counts_on(scope_of, training):
    for _ in range(2):
        scope = scope_of(*training, resume=True).attach()
        path = scope.session.path
        run(scope, *training, 3)
        scope.detach()
    assert columns(path / "global.arrow")["step"] == [0, 1, 2, 3, 4, 5]


def test_two_runs_of_one_name_get_two_folders(scope_of, training):
    paths = []
    for _ in range(2):
        scope = scope_of(*training).attach()
        paths.append(scope.session.path)
        run(scope, *training, 2)
        scope.detach()
    assert paths[0] != paths[1]
    assert all(columns(path / "global.arrow")["step"] == [0, 1] for path in paths)


def test_a_fall_of_the_loss_is_no_spike_and_a_leap_is(scope_of, training):
    scope = scope_of(*training).attach()
    generator = torch.Generator().manual_seed(0)
    spikes = []
    for step in range(300):
        noise = 0.02 * torch.randn(1, generator=generator).item()
        value = 3 * math.exp(-step / 60) + 1 + noise - (0.5 if step > 200 else 0) + (2.0 if step == 280 else 0)
        spikes.append(scope.step(value))
    scope.detach()
    assert [s["step"] for s in spikes if s is not None] == [280]


def test_the_default_run_name_and_folder_need_no_settings(training, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with TrainScope(*training) as scope:
        run(scope, *training, 2)
        path = scope.session.path
    assert path.parent.name == "trainscope_runs"
    assert path.name.startswith("run_")
    assert scope.faults == {}


def test_no_warning_is_raised_by_a_plain_run(scope_of, training):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with scope_of(*training) as scope:
            run(scope, *training, 12)
    assert scope.faults == {}

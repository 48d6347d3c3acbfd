"""What is told to Weights & Biases and to alerts while training goes on."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
import types

import pytest

torch = pytest.importorskip("torch")

from trainscope import TrainScopeConfig  # noqa: E402
from trainscope.core.errors import ConfigError  # noqa: E402

from .conftest import batch_of, loss_of  # noqa: E402

pytestmark = pytest.mark.slow

seen: list[dict] = []


def noted(spike):
    seen.append(spike)


class WandbRun:
    """What the recorder uses of ``wandb.Run``, with its signatures (0.31): rows, and what was asked of it."""

    def __init__(self):
        self.rows, self.pending, self.alerts, self.metrics, self.summary = [], {}, [], [], {}
        self.broken = False

    def log(self, data, step=None, commit=None):
        if self.broken:
            raise RuntimeError("no connection")
        self.pending.update(data)
        if commit or (commit is None and step is None):
            self.rows.append(self.pending)
            self.pending = {}

    def alert(self, title, text, level=None, wait_duration=None):
        self.alerts.append((title, text, level, wait_duration))

    def define_metric(self, name, step_metric=None):
        self.metrics.append((name, step_metric))


@pytest.fixture
def wandb_run(monkeypatch):
    module = types.ModuleType("wandb")
    module.run = WandbRun()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module.run


def train(scope, model, optimizer, losses, run=None):
    """Step with `losses`; the script logs each to its run as well."""
    for step, value in enumerate(losses):
        optimizer.zero_grad()
        loss_of(model, batch_of(step)).backward()
        scope.step(value)
        optimizer.step()
        if run is not None:
            run.log({"mine": value})


def test_an_active_wandb_run_gets_every_step_in_the_rows_that_the_script_logs(scope_of, training, wandb_run):
    with scope_of(*training) as scope:
        train(scope, *training, [2.0 - step / 20 for step in range(20)], wandb_run)
        path = scope.session.path
    assert len(wandb_run.rows) == 20  # the script's own: no row was added
    assert [row["trainscope/step"] for row in wandb_run.rows] == list(range(20))
    assert [row["trainscope/loss"] for row in wandb_run.rows] == [row["mine"] for row in wandb_run.rows]
    assert all(row["trainscope/grad_norm"] > 0 and row["trainscope/spikes"] == 0 for row in wandb_run.rows)
    assert wandb_run.metrics == [("trainscope/step", None), ("trainscope/*", "trainscope/step")]
    assert wandb_run.summary == {"trainscope/run_dir": str(path)}
    assert wandb_run.alerts == []


def test_a_row_of_several_steps_says_which_of_them_was_the_spike(scope_of, training, wandb_run):
    with scope_of(*training) as scope:
        for step in range(10):
            train(scope, *training, [math.inf if step == 3 else 1.0])
        wandb_run.log({"mine": 1.0})
    (row,) = wandb_run.rows
    assert (row["trainscope/step"], row["trainscope/loss"]) == (9, 1.0)
    assert (row["trainscope/spike_step"], row["trainscope/spike_loss"], row["trainscope/spike_score"]) == (
        3,
        math.inf,
        math.inf,
    )


def test_the_gradient_norm_told_is_the_one_recorded(scope_of, training, wandb_run):
    from .conftest import columns

    with scope_of(*training) as scope:
        train(scope, *training, [1.0] * 5, wandb_run)
        path = scope.session.path
    recorded = columns(path / "global.arrow")["grad_norm_before_clip"]
    assert [row["trainscope/grad_norm"] for row in wandb_run.rows] == pytest.approx(recorded, rel=1e-6)


def test_spikes_are_wandb_alerts_only_where_that_is_asked_for(scope_of, training, wandb_run):
    losses = [1.0, 1.0, math.nan, 1.0]
    with scope_of(*training) as scope:
        train(scope, *training, losses, wandb_run)
    assert wandb_run.alerts == []
    assert [row["trainscope/spikes"] for row in wandb_run.rows] == [0, 0, 1, 1]
    with scope_of(*training, integrations={"wandb": {"alerts": True}}) as scope:
        train(scope, *training, losses, wandb_run)
        path = scope.session.path
    assert wandb_run.alerts == [
        (
            "trainscope: not finite",
            f"step 2: not finite (non_finite loss), loss nan; recorded in {path}",
            "ERROR",
            300.0,
        )
    ]


def test_wandb_is_left_alone_where_it_is_switched_off_not_begun_or_not_imported(
    scope_of, training, wandb_run, monkeypatch
):
    with scope_of(*training, integrations={"wandb": {"enabled": False}}) as scope:
        train(scope, *training, [1.0] * 3)
    assert wandb_run.pending == {}
    monkeypatch.setattr(sys.modules["wandb"], "run", None)
    with scope_of(*training) as scope:
        train(scope, *training, [1.0] * 3)
        monkeypatch.delitem(sys.modules, "wandb")
        train(scope, *training, [1.0] * 3)
        assert scope.faults == {}
    assert "wandb" not in sys.modules
    assert wandb_run.pending == {}


def test_a_broken_wandb_run_costs_one_warning(scope_of, training, wandb_run, caplog):
    wandb_run.broken = True
    with caplog.at_level(logging.WARNING, "trainscope"), scope_of(*training) as scope:
        train(scope, *training, [1.0] * 3)
        assert scope.faults == {"wandb: RuntimeError": 3}
    assert [r.getMessage() for r in caplog.records] == [
        "recorder fault, training goes on (wandb: RuntimeError: no connection)"
    ]


def test_alerts_are_called_with_every_spike_as_the_step_returns_it(scope_of, training, caplog):
    def broken(spike):
        raise OSError("no network")

    seen.clear()
    with scope_of(*training, alerts=[broken, noted, f"{__name__}.noted"]) as scope:
        found = []
        for step, loss in enumerate([1.0, math.inf, 1.0, 1.0]):
            found.append(scope.step(torch.tensor(loss), batch_index=step + 7))
        assert scope.faults == {"alert: OSError": 1}
    assert [spike is not None for spike in found] == [False, True, False, False]
    assert seen == [found[1], found[1]]
    assert (found[1]["step"], found[1]["batch_index"], found[1]["loss"]) == (1, 8, math.inf)


@pytest.mark.parametrize(
    ("alerts", "message"),
    [
        (["slack"], r"alerts\[0\] = 'slack': expected a dotted path such as package\.module\.Class"),
        ([noted, "os.nothing"], r"alerts\[1\] = 'os\.nothing': cannot be imported"),
        ([3], r"alerts\[0\] = 3: expected a callable that takes a spike, or a dotted path to one"),
    ],
)
def test_an_alert_that_cannot_be_called_is_told_before_training(scope_of, training, alerts, message):
    with pytest.raises(ConfigError, match=message):
        scope_of(*training, alerts=alerts)


@pytest.mark.parametrize(
    ("integrations", "message"),
    [
        ({"wandbb": {}}, r"unknown integration 'wandbb'; did you mean 'wandb'"),
        ({"wandb": True}, r"expected \{'wandb': "),
        ({"wandb": {"alert": True}}, r"wandb: unknown key 'alert'; did you mean 'alerts'"),
        ({"wandb": {"alerts": "yes"}}, r"expected \{'wandb': "),
    ],
)
def test_a_wrong_integration_is_an_error_that_names_it(integrations, message):
    with pytest.raises(ConfigError, match=r"integrations = .*" + message):
        TrainScopeConfig(integrations=integrations)


def test_a_slow_wandb_run_gets_fewer_steps_and_every_spike(scope_of, training, wandb_run, monkeypatch):
    monkeypatch.setattr("trainscope.recorder.outlets.FREE_SECONDS", 0.05)
    log = wandb_run.log

    def slow(data, step=None, commit=None):
        time.sleep(0.02 if commit is False else 0)
        log(data, step, commit)

    wandb_run.log = slow
    with scope_of(*training) as scope:
        for step, loss in enumerate([1.0] * 100 + [math.nan] + [1.0] * 10):
            scope.step(loss)
            wandb_run.log({"mine": step})
    told = [row["trainscope/step"] for row in wandb_run.rows if "trainscope/step" in row]
    assert told[:2] == [0, 1]
    assert 100 in told
    assert len(told) < 50


def test_a_real_wandb_run_keeps_its_own_steps(scope_of, training, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setitem(os.environ, "WANDB_SILENT", "true")
    with wandb.init(mode="offline", project="p", dir=str(tmp_path)) as run, scope_of(*training) as scope:
        for step in range(6):
            training[1].zero_grad()
            loss_of(training[0], batch_of(step)).backward()
            scope.step(1.0 + step)
            run.log({"mine": step}, step=10 * step)
            assert run.step == 10 * step
        assert scope.faults == {}
        summary = dict(run.summary)
    # The script's last row is still open, and so is what has joined it.
    assert (summary["trainscope/step"], summary["trainscope/loss"], summary["mine"]) == (5, 6.0, 4)

"""The recorder notes what the batches of each step look like, and a plan can be made from it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F  # noqa: N812  # the field's name for it

from trainscope.core.config import TrainScopeConfig
from trainscope.detectors import bad_batch
from trainscope.readers import read_runs
from trainscope.recorder import TrainScope

pytestmark = pytest.mark.slow


def record(folder, steps: int, *, micro: int = 1, keywords: bool = False):
    torch.manual_seed(0)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.out = torch.nn.Embedding(64, 16), torch.nn.Linear(16, 64)

        def forward(self, input_ids=None):
            return self.out(self.emb(input_ids))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    config = TrainScopeConfig(run_dir=str(folder), run_name="r", activation_metrics_every_n_steps=50)
    with TrainScope(model, optimizer, config) as scope:
        for step in range(steps):
            optimizer.zero_grad()
            for part in range(micro):
                tokens = torch.randint(20, (8, 24), generator=generator)
                if step in (40, 41) and part == micro - 1:
                    tokens = torch.randint(64, (8, 24), generator=generator)
                output = model(input_ids=tokens) if keywords else model(tokens)
                loss = F.cross_entropy(output.flatten(0, 1), tokens.flatten())
                loss.backward()
            scope.step(loss.item(), batch_index=step)
            optimizer.step()
        assert scope.faults == {}
    return read_runs(str(folder / "r"))[0]


@pytest.mark.parametrize(("micro", "keywords"), [(1, False), (3, True)])
def test_bad_batches_of_a_recorded_run_are_named(tmp_path, micro, keywords):
    run = record(tmp_path, 60, micro=micro, keywords=keywords)
    assert len(run.series["batch/token_entropy"]) == 60
    assert set(run.series["batch/size"].value) == {8 * 24.0}
    assert "batch/mean" not in run.series
    (finding,) = bad_batch.detect(run, bad_batch.Params())
    assert finding.evidence["steps"] == "40-41"
    assert run.series["batch_index"].value[40] == 40


def test_an_evaluation_is_no_batch_of_training(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with TrainScope(model, optimizer, TrainScopeConfig(run_dir=str(tmp_path), run_name="r")) as scope:
        for step in range(4):
            with torch.no_grad():
                model(torch.full((8, 4), 1e6))
            loss = model(torch.ones(8, 4)).mean()
            loss.backward()
            scope.step(loss.item(), batch_index=step)
            optimizer.step()
    run = read_runs(str(tmp_path / "r"))[0]
    assert run.series["batch/mean"].value.tolist() == [1.0] * 4

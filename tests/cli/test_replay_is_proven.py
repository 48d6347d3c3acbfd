"""Plans that are carried out: a recorded spike is planned, replayed and proven gone, or one line says why not."""

from __future__ import annotations

import json
import os
import sys
import textwrap

import pytest

from trainscope.replay.config import load

TRAINING = """
    import sys, torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokens = torch.randint(8, (2400, 24)).cumsum(1).remainder(8)
    tokens[8 * 120 : 8 * 123] = torch.randint(8, 32, (24, 24)) if sys.argv[1:] == ["bad"] else 0
    loader = torch.utils.data.DataLoader(tokens, batch_size=8)
    model = torch.nn.Sequential(torch.nn.Embedding(32, 16), torch.nn.Linear(16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_recorded_spike_is_planned_and_the_plan_is_proven(cli, warm, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINING))
    train = ("--", *warm(sys.executable, "train.py", "bad"))
    assert cli("smoke", "--steps", "220", *train).code == 0
    assert cli("replay", "--run", "trainscope_smoke/smoke").code == 0
    plan = load(tmp_path / "replay_config.json")
    assert (plan.action, plan.skip_batches) == ("skip", [120, 121, 122])
    result = cli("smoke", "--replay", "replay_config.json", *train)
    assert result.code == 0, result.out + result.err
    assert result.out.startswith("replay: verified: 3 batches left out: the incident of step 120 is gone")
    (run,) = json.loads((tmp_path / "trainscope_replay" / "findings.json").read_text())["runs"]
    assert run["replay"]["proof"]["verdict"] == "verified"
    assert run["config"]["smoke.dropped_batches"] == "[120, 121, 122]"

    result = cli("smoke", "--replay", "replay_config.json", "--out", "trainscope_smoke", *train)
    assert (result.code, "holds the run to compare with" in result.err) == (2, True)

    wrong = plan.model_copy(update={"skip_batches": [10, 11, 12], "steps": [10, 11, 12]})
    (tmp_path / "wrong.json").write_text(wrong.to_json())
    result = cli("smoke", "--replay", "wrong.json", *train)
    assert (result.code, result.out.split(":")[1]) == (1, " still there")

    (tmp_path / "mine.json").write_text('{"skip_batches": [3]}')
    result = cli("smoke", "--replay", "mine.json", *train)
    assert (result.code, "names no run to compare with" in result.err) == (2, True)


TWO_RANKS = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(1760, 8)
    y = x.sum(1, keepdim=True).tanh()
    x[1920 // 2 + 1 : 1920 // 2 + 24 : 2] *= 60  # twelve samples of rank 1, and none of rank 0
    sampler = torch.utils.data.DistributedSampler(list(zip(x, y)), shuffle=False)
    loader = torch.utils.data.DataLoader(sampler.dataset, batch_size=4, sampler=sampler)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_bad_batch_of_one_rank_is_planned_and_proven_on_that_rank(cli, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(textwrap.dedent(TWO_RANKS))
    train = ("--", sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py")
    assert cli("smoke", "--steps", "200", *train).code == 0
    result = cli("replay", "--run", "trainscope_smoke")
    assert result.code == 0, result.err
    plan = load(tmp_path / "replay_config.json")
    assert (plan.cause, plan.skip_batches) == ("data", [120, 121, 122])
    assert plan.notes[0].startswith("planned from rank 1 of 2 recorded ranks, which shows the incident best (rank 0:")
    assert plan.source is not None
    assert plan.source.path == "trainscope_smoke/smoke_rank1"
    result = cli("smoke", "--replay", "replay_config.json", *train)
    assert result.code == 0, result.out + result.err
    assert "bit by bit, for the 120 steps before step 120" in result.out


DRAWN = """
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = torch.randint(8, (20_000,)).cumsum(0).remainder(8)
    model = torch.nn.Sequential(torch.nn.Embedding(32, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def get_batch(step):
        starts = torch.randint(len(text) - 25, (8, 1))
        tokens = text[starts + torch.arange(25)]
        return torch.randint(8, 32, tokens.shape) if 120 <= step < 123 else tokens

    for step in range(240):
        tokens = get_batch(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_script_without_a_loader_is_replayed_by_undoing_updates(cli, warm, tmp_path):
    """As nanoGPT draws its batches: random offsets, so that leaving out a draw would change all that follow."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(textwrap.dedent(DRAWN))
    train = ("--", *warm(sys.executable, "train.py"))
    assert cli("smoke", "--steps", "220", *train).code == 0
    planned = cli("replay", "--run", "trainscope_smoke/smoke")
    assert "by undoing their updates" in planned.out
    assert 'if step in set(json.load(open("replay_config.json"))["steps"]): continue' in planned.out
    plan = load(tmp_path / "replay_config.json")
    assert (plan.action, plan.method, plan.skip_batches) == ("skip", "skip_update", [120, 121, 122])
    result = cli("smoke", "--replay", "replay_config.json", *train)
    assert result.code == 0, result.out + result.err
    assert result.out.startswith(
        "replay: verified: 3 batches left out by undoing their updates: the incident of step 120 is gone"
    )
    assert "the loss is the same, bit by bit, for the 120 steps before step 120" in result.out

    old = plan.model_copy(update={"method": "drop_batch"})
    (tmp_path / "old.json").write_text(old.to_json())
    result = cli("smoke", "--replay", "old.json", *train)
    assert (result.code, "plan anew with trainscope replay --run" in result.out) == (2, True)


@pytest.mark.parametrize("place", ["../gone", "\0", "x" * 5000, "a\ud800"])
def test_a_plan_whose_run_cannot_be_read_is_named(cli, tmp_path, place):
    source = {"id": "0" * 12, "name": "a", "path": place}
    (tmp_path / "plan.json").write_text(json.dumps({"skip_batches": [1], "source": source}))
    result = cli("smoke", "--replay", "plan.json", "--", "true")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("error: --replay plan.json: ")
    assert not (tmp_path / "trainscope_replay").exists()


def test_a_plan_whose_run_is_a_pipe_is_refused_and_not_waited_for(cli, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    plan = {"skip_batches": [1], "source": {"id": "0" * 12, "name": "x", "path": "pipe"}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    result = cli("smoke", "--replay", "plan.json", "--", "true")
    assert result.code == 2
    assert "source.path is neither a file nor a folder" in result.err


@pytest.mark.parametrize("option", ["--steps", "--seed"])
def test_a_number_that_no_plan_can_hold_is_refused(cli, option):
    result = cli("smoke", option, str(2**53), "--", "true")
    assert result.code == 2
    assert "is not in the range" in result.err

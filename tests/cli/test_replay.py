"""Plans from the command line: asked for or found, written whole, never over somebody else's file."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from trainscope.replay.config import load


def log(path: Path, fault=lambda loss: None) -> str:
    rng = np.random.default_rng(0)
    loss = 2 + 3 * np.exp(-np.arange(800) / 30) + 0.05 * rng.standard_normal(800)
    fault(loss)
    path.write_text("".join(json.dumps({"step": i, "loss": float(v), "lr": 1e-3}) + "\n" for i, v in enumerate(loss)))
    return str(path)


def spike(loss):
    loss[400:403] += 3


def test_a_checkpoint_and_batches_make_the_plan_of_the_manual(cli, tmp_path):
    (tmp_path / "step_4400.pt").touch()
    result = cli("replay", "--checkpoint", "step_4400.pt", "--skip-batches", "4521,4522,4523", "--resume")
    assert (result.code, result.err) == (0, "written: replay_config.json\n")
    plan = json.loads((tmp_path / "replay_config.json").read_text())
    assert plan["skip_batches"] == [4521, 4522, 4523]
    assert (plan["checkpoint"], plan["resume"], plan["rewind_to_step"]) == ("step_4400.pt", True, 4400)
    assert "3 batches: 4521-4523" in result.out


def test_batches_come_from_a_file_and_the_plan_goes_where_it_is_sent(cli, tmp_path):
    (tmp_path / "batches.txt").write_text("4521\n4530-4532, 7\n")
    result = cli("replay", "--checkpoint", "s3://bucket/ckpt-9", "--skip-batches", "@batches.txt", "--out", "-")
    assert result.code == 0
    assert result.err == ""
    assert json.loads(result.out)["skip_batches"] == [7, 4521, 4530, 4531, 4532]
    assert not (tmp_path / "replay_config.json").exists()


def test_a_checkpoint_that_is_not_here_is_warned_of(cli):
    result = cli("replay", "--checkpoint", "far.pt", "--skip-batches", "1")
    assert result.code == 0
    assert result.err.startswith("warning: far.pt: no such file or folder here")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "nothing to plan: give --checkpoint and --skip-batches, or --run"),
        (["--checkpoint", "a.pt"], "--skip-batches is missing"),
        (["--checkpoint", "a.pt", "--skip-batches", "a"], "--skip-batches: 'a' is no batch number"),
        (["--checkpoint", "a.pt", "--skip-batches", "@nothing"], "--skip-batches @nothing: cannot be read"),
        (["--checkpoint", "a.pt", "--skip-batches", "1", "--checkpoints", "."], "--checkpoints belongs to --run"),
        (["--run", "x.jsonl", "--skip-batches", "1"], "--run finds the batches itself"),
        (["--run", "spike.jsonl", "--checkpoint", "last.pt"], "its name does not say its step, as step_400.pt does"),
        (["--run", "spike.jsonl", "--checkpoints", "nowhere"], "nowhere: cannot be listed"),
        (["--checkpoint", "a.pt", "--skip-batches", "1", "--out", "no/such/x.json"], "there is no folder"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, args, said):
    log(tmp_path / "spike.jsonl", spike)
    result = cli("replay", *args)
    assert result.code == 2
    (line,) = result.err.splitlines()[-1:]
    assert line.startswith("error: ")
    assert said in line
    assert not (tmp_path / "replay_config.json").exists()


def test_a_file_that_is_no_plan_is_never_written_over(cli, tmp_path):
    asked = ("replay", "--checkpoint", "s3://a/1", "--skip-batches", "1")
    (tmp_path / "replay_config.json").write_text('{"precious": 1}')
    result = cli(*asked)
    assert result.code == 2
    assert "is there and is no replay configuration" in result.err
    assert (tmp_path / "replay_config.json").read_text() == '{"precious": 1}'
    (tmp_path / "replay_config.json").unlink()
    assert cli(*asked).code == 0
    assert cli("replay", "--checkpoint", "s3://a/1", "--skip-batches", "2").code == 0
    assert load(tmp_path / "replay_config.json").skip_batches == [2]


def test_a_run_is_planned_from_its_story(cli, tmp_path):
    log(tmp_path / "spike.jsonl", spike)
    (tmp_path / "ck").mkdir()
    for step in (200, 300, 350):
        (tmp_path / "ck" / f"step_{step}.pt").touch()
    result = cli("replay", "--run", "spike.jsonl", "--checkpoints", "ck")
    assert result.code == 0
    plan = load(tmp_path / "replay_config.json")
    assert (plan.checkpoint, plan.rewind_to_step, plan.onset) == ("ck/step_300.pt", 300, 400)
    assert plan.skip_batches == list(range(300, 600))
    assert plan.source is not None
    assert plan.source.path == "spike.jsonl"
    (tmp_path / "out").mkdir()
    (tmp_path / "ck").rename(tmp_path / "out" / "checkpoints")
    assert cli("replay", "--run", "spike.jsonl", "--checkpoints", "out").code == 0
    assert load(tmp_path / "replay_config.json").checkpoint == "out/checkpoints/step_300.pt"
    (tmp_path / "out" / "checkpoints").rename(tmp_path / "ck")
    assert cli("replay", "--run", "spike.jsonl", "--checkpoints", "ck").code == 0
    again = cli("replay", "--run", "spike.jsonl", "--checkpoints", "ck", "--output", "json")
    assert json.loads(again.out) == json.loads((tmp_path / "replay_config.json").read_text())


def test_a_healthy_run_has_no_plan(cli, tmp_path):
    log(tmp_path / "healthy.jsonl")
    result = cli("replay", "--run", "healthy.jsonl")
    assert (result.code, result.out) == (0, "")
    assert result.err == "no incident in this run: nothing to skip, nothing to rewind\n"
    assert not (tmp_path / "replay_config.json").exists()


def test_several_runs_must_be_told_apart(cli, tmp_path):
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "a.jsonl", spike)
    log(tmp_path / "logs" / "b.jsonl", spike)
    result = cli("replay", "--run", "logs")
    assert result.code == 2
    assert "holds 2 runs; name one of them" in result.err


def test_ci_writes_the_plan_beside_the_findings_and_takes_it_away_again(cli, tmp_path):
    settings = tmp_path / "trainscope.toml"
    settings.write_text(f'logs = ["{log(tmp_path / "a.jsonl", spike)}"]\n')
    assert cli("ci", "--out", "out").code == 1
    plan = load(tmp_path / "out" / "replay_config.json")
    (run,) = json.loads((tmp_path / "out" / "findings.json").read_text())["runs"]
    assert run["replay"]["path"] == "replay_config.json"
    assert run["replay"]["skip_batches"] == plan.skip_batches
    assert run["replay"]["action"] == "skip"
    settings.write_text(f'logs = ["{log(tmp_path / "a.jsonl")}"]\n')
    assert cli("ci", "--out", "out").code == 0
    assert not (tmp_path / "out" / "replay_config.json").exists()


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
def test_a_recorded_spike_is_planned_and_the_plan_is_proven(cli, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINING))
    train = ("--", sys.executable, "train.py", "bad")
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
def test_a_script_without_a_loader_is_replayed_by_undoing_updates(cli, tmp_path):
    """As nanoGPT draws its batches: random offsets, so that leaving out a draw would change all that follow."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(textwrap.dedent(DRAWN))
    train = ("--", sys.executable, "train.py")
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


def test_a_file_of_far_too_many_batches_ends_at_the_line_that_goes_too_far(cli, tmp_path):
    lines = [f"{n}000000-{n}999999" for n in range(1, 1000)]  # a billion numbers
    (tmp_path / "many.txt").write_text("\n".join(lines))
    result = cli("replay", "--checkpoint", "step_4.pt", "--skip-batches", "@many.txt")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: many.txt:2: names more than 1,000,000 batches with the lines before it\n"


def test_a_wrong_list_is_one_line_although_the_checkpoint_is_not_here(cli):
    result = cli("replay", "--checkpoint", "far.pt", "--skip-batches", "5-3")
    assert (result.code, result.err) == (2, "error: --skip-batches: '5-3' runs backwards\n")
    result = cli("replay", "--checkpoint", " ", "--skip-batches", "5")
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_a_checkpoint_whose_name_is_too_long_for_a_file_is_warned_of(cli):
    result = cli("replay", "--checkpoint", "x" * 5000, "--skip-batches", "5", "--out", "-")
    assert result.code == 0
    assert result.err.startswith("warning: x")


def test_a_plan_of_an_earlier_run_is_named_where_a_healthy_run_has_none(cli, tmp_path):
    assert cli("replay", "--run", log(tmp_path / "bad.csv", spike)).code == 0
    result = cli("replay", "--run", log(tmp_path / "fine.csv"))
    assert (result.code, result.err) == (
        0,
        "no incident in this run: nothing to skip, nothing to rewind; "
        "replay_config.json is of an earlier run and stays as it is\n",
    )


@pytest.mark.parametrize("place", ["../gone", "\0", "x" * 5000, "a\ud800"])
def test_a_plan_whose_run_cannot_be_read_is_named(cli, tmp_path, place):
    source = {"id": "0" * 12, "name": "a", "path": place}
    (tmp_path / "plan.json").write_text(json.dumps({"skip_batches": [1], "source": source}))
    result = cli("smoke", "--replay", "plan.json", "--", "true")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("error: --replay plan.json: ")
    assert not (tmp_path / "trainscope_replay").exists()


def test_an_incident_of_a_log_without_steps_cannot_be_planned_and_is_not_called_none(cli, tmp_path):
    rows = "".join(f"{e},{2 + (3 if e == 70 else 0) + 0.01 * (e % 3)}\n" for e in range(120))
    (tmp_path / "epochs.csv").write_text(f"epoch,loss\n{rows}")
    result = cli("replay", "--run", "epochs.csv")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "error: --run epochs.csv: the log counts epochs and not steps, so that no batch can be named; log the step, or "
        "record the run\n"
    )
    assert not (tmp_path / "replay_config.json").exists()


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_run_without_a_name_is_one_line(cli, command):
    result = cli(command, "--run", "")
    assert (result.code, result.err) == (3, "error: '' names nothing; give a file, a folder or a pattern\n")


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

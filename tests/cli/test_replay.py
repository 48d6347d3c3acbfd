"""Plans from the command line: asked for or found, written whole, never over somebody else's file."""

from __future__ import annotations

import json
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

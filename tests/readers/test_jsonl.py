from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.readers import json_rows, read_runs
from trainscope.readers.json_rows import parse_lines

from .logs import as_jsonl, kinds, only, points, write


def test_a_cut_last_line_is_left_out_with_a_note_that_says_where(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1.5}\n{"step": 3, "lo'))
    (note,) = run.notes
    assert (note.kind, note.start_step) == ("truncated", 2)
    assert "line (3)" in note.message
    assert len(run.series["train/loss"]) == 2


def test_broken_lines_in_the_middle_are_counted_with_their_numbers(tmp_path: Path) -> None:
    text = '{"step": 1, "loss": 2}\noops\n\n{"step": 2, "loss": 1}\n[1, 2]\n{"step": 3, "loss": 1}\n'
    run = only(write(tmp_path, "a.jsonl", text))
    assert [(n.kind, n.count) for n in run.notes] == [("malformed_line", 1), ("malformed_line", 1)]
    assert "line 2" in run.notes[0].message
    assert "line 5" in run.notes[1].message


@pytest.mark.parametrize("token", ["NaN", "nan", '"NaN"', '"nan"'])
def test_nan_in_any_spelling_json_writers_use_is_nan(token: str, tmp_path: Path) -> None:
    text = "".join(f'{{"step": {i}, "loss": {token if i == 2 else 1.0}}}\n' for i in range(5))
    if token == "nan":
        text = text.replace("nan", "NaN")
    values = only(write(tmp_path, "a.jsonl", text)).series["train/loss"].value
    assert np.isnan(values).tolist() == [False, False, True, False, False]


def test_infinity_tokens_and_strings_are_infinite(tmp_path: Path) -> None:
    text = "".join(
        f'{{"step": {i}, "loss": {token}}}\n' for i, token in enumerate(["Infinity", "-Infinity", '"inf"', "1e999"])
    )
    assert only(write(tmp_path, "a.jsonl", text)).series["train/loss"].value.tolist() == [
        np.inf,
        -np.inf,
        np.inf,
        np.inf,
    ]


def test_an_integer_too_large_for_a_float_is_infinite(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.jsonl", f'{{"step": 1, "loss": {"9" * 400}}}\n{{"step": 2, "loss": 1}}\n'))
    assert run.series["train/loss"].value.tolist() == [np.inf, 1.0]


def test_a_row_without_a_usable_step_is_left_out_with_a_note(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 1.0} for s in (1, 2, "x", None, 5, 6, 7)]
    text = as_jsonl(rows) + '{"step": 1e999, "loss": 1}\n{"step": 8.5, "loss": 1}\n' + as_jsonl(rows[4:] * 1)
    run = only(write(tmp_path, "a.jsonl", text.replace("8.5", "8.5")))
    note = next(n for n in run.notes if n.kind == "bad_step")
    assert note.count == 4
    assert (note.start_step, note.end_step) == (2, 5)


def test_an_evaluation_without_a_step_gets_that_of_the_row_before(tmp_path: Path) -> None:
    rows = [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0}, {"eval_loss": 3.0}, {"step": 3, "loss": 1.0}]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert points(run, "eval/loss") == [(2, 3.0)]
    assert kinds(run) == ["assumed_step"]


def test_nested_metrics_get_dotted_names(tmp_path: Path) -> None:
    rows = [{"step": i, "train": {"loss": 2.0, "norms": {"wte": 0.5}}, "eval": {"loss": 3.0}} for i in range(3)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert sorted(run.series) == ["eval/loss", "train.norms.wte", "train/loss"]


def test_a_mean_with_its_count_and_deviation_keeps_the_name(tmp_path: Path) -> None:
    rows = [{"Loss/G/loss": {"num": 64, "mean": 1.0 + i, "std": 0.1}, "timestamp": 1.7e9 + i} for i in range(3)]
    run = only(write(tmp_path, "stats.jsonl", as_jsonl(rows)))
    assert list(run.series) == ["Loss/G/loss"]
    assert run.series["Loss/G/loss"].time.tolist() == [1.7e9, 1.7e9 + 1, 1.7e9 + 2]
    assert "folded_statistics" in kinds(run)


def test_steps_written_as_a_share_of_a_total_are_steps(tmp_path: Path) -> None:
    rows = [{"loss": 1.0, "global_step/max_steps": f"{i}/100", "elapsed_time": f"{i}m 3s"} for i in range(1, 5)]
    run = only(write(tmp_path, "logging.jsonl", as_jsonl(rows)))
    assert run.series["train/loss"].step.tolist() == [1, 2, 3, 4]
    assert run.series["train/loss"].time.tolist() == [63.0, 123.0, 183.0, 243.0]


def test_llama_factory_steps_times_and_totals_are_understood(tmp_path: Path) -> None:
    rows = [
        {"current_steps": i, "total_steps": 50, "loss": 2.0, "lr": 1e-5, "elapsed_time": f"0:0{i}:01"}
        for i in range(1, 6)
    ]
    run = only(write(tmp_path, "trainer_log.jsonl", as_jsonl(rows)))
    assert run.config["total_steps"] == 50
    assert sorted(run.series) == ["learning_rate", "train/loss"]
    assert run.series["train/loss"].time.tolist() == [61.0, 121.0, 181.0, 241.0, 301.0]


def test_a_phase_column_tells_training_from_validation_rows(tmp_path: Path) -> None:
    rows = [
        {"step": i, "split": split, "loss": 1.0 if split == "train" else 2.0}
        for i in range(5)
        for split in ("train", "val")
    ]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert {n: set(s.value.tolist()) for n, s in run.series.items()} == {
        "train/loss": {1.0},
        "eval/loss": {2.0},
    }
    assert kinds(run) == ["split_by_phase"]


def test_a_constant_seed_is_configuration(tmp_path: Path) -> None:
    run = only(write(tmp_path, "a.jsonl", as_jsonl([{"step": i, "seed": 7, "loss": 1.0} for i in range(4)])))
    assert dict(run.config) == {"seed": 7}
    assert list(run.series) == ["train/loss"]


@pytest.mark.parametrize(("column", "values"), [("run", ["a", "b"]), ("seed", [1, 2]), ("Name", ["x", "y"])])
def test_a_run_column_tells_runs_apart(column: str, values: list[object], tmp_path: Path) -> None:
    rows = [{"step": i, column: value, "loss": float(i)} for i in range(5) for value in values]
    runs = read_runs(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert [run.name for run in runs] == [v if isinstance(v, str) else f"{column}={v}" for v in values]
    assert [len(run.series["train/loss"]) for run in runs] == [5, 5]
    assert all(kinds(run) == [] for run in runs)


def test_constant_text_is_configuration_and_varying_text_is_noted(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1.0, "model": "gpt2", "sample": f"text {i}"} for i in range(4)]
    run = only(write(tmp_path, "a.jsonl", as_jsonl(rows)))
    assert dict(run.config) == {"model": "gpt2"}
    assert [(n.kind, n.message) for n in run.notes] == [("text_column", "1 column holds no numbers: 'sample'")]


def test_text_among_numbers_is_noted_and_escaped(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": "\x1b[31mOOM" if i == 2 else 1.0} for i in range(5)]
    (note,) = only(write(tmp_path, "a.jsonl", as_jsonl(rows))).notes
    assert (note.kind, note.count, note.start_step, note.end_step) == ("bad_cell", 1, 2, 2)
    assert note.message.isprintable()


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", NoDataError, "the file is empty"),
        (" \n\n", NoDataError, "the file is empty"),
        ("[1, 2]\n[3, 4]\n", ReadError, "no reader recognises"),
        ('{"model": "x", "params": {"lr": 0.1}}', ReadError, "no reader recognises"),
        ('{"step": 1, "note": "a"}\n{"step": 2, "note": "b"}\n', NoDataError, "no metric in it"),
        ("[0.1, 0.2]", ReadError, "no reader recognises"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(content: str, error: type, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", content)
    with pytest.raises(error) as caught:
        read_runs(path)
    assert str(caught.value).startswith(f"{path}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_forcing_the_format_on_other_text_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r":1: no line of it is a JSON object$"):
        read_runs(write(tmp_path, "a.txt", "hello\nworld\n"), format="jsonl")


def test_blocks_do_not_change_what_the_tolerant_parser_reads(monkeypatch) -> None:
    rows = [{"step": i, "loss": None if i % 7 == 0 else i / 3, "x": {"y": i}} for i in range(500)]
    text = as_jsonl(rows).replace('"step": 100,', '"step": 100').encode()
    whole = parse_lines(text)
    monkeypatch.setattr(json_rows, "_BLOCK_BYTES", 100)
    pieces = parse_lines(text)
    assert whole.rows == pieces.rows == 499
    for name, column in whole.columns.items():
        assert np.array_equal(column.value, pieces.columns[name].value, equal_nan=True)
        assert np.array_equal(column.state, pieces.columns[name].state)
    assert [n.message for n in whole.notes] == [n.message for n in pieces.notes]


def test_deeply_nested_json_is_a_malformed_line(tmp_path: Path) -> None:
    text = '{"step": 1, "loss": 1}\n' * 3 + '{"a":' * 100_000 + "\n" + json.dumps({"step": 2, "loss": 1}) + "\n"
    assert kinds(only(write(tmp_path, "a.jsonl", text)))[0] == "malformed_line"

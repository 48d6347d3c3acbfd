from __future__ import annotations

from trainscope.core.finding import Severity

from .smoke_runs import found, single, skipped, smoke_run

ID = "skipped_batches"


def run(**counts):
    return smoke_run(
        batches=[{"given": 150, "trained": 150, "dropped": 0, "skipped_at_start": 0, "steps": []} | counts]
    )


def test_batches_that_were_all_trained_on_are_right():
    assert found(ID, run()) == []


def test_dropped_batches_are_counted_and_their_first_step_is_named():
    finding = single(ID, run(trained=75, dropped=75, steps=[1, 2]))
    assert finding.severity is Severity.WARNING
    assert "75 of 150 batches that the DataLoader gave were never trained on, first before step 1" in finding.message


def test_a_few_left_out_may_be_a_filter():
    assert single(ID, run(trained=146, dropped=4, steps=[7])).severity is Severity.INFO


def test_batches_read_and_dropped_before_the_first_step_are_an_information():
    finding = single(ID, run(skipped_at_start=40))
    assert finding.severity is Severity.INFO
    assert "40 batches before the first training step" in finding.message


def test_a_run_whose_batches_cannot_be_followed_is_skipped():
    assert "as it was given" in skipped(ID, smoke_run(batches=None))


def test_known_false_positive_a_loop_that_leaves_out_every_other_batch_on_purpose():
    assert single(ID, run(trained=75, dropped=75, steps=[1])).severity is Severity.WARNING

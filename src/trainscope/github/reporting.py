"""The steps that tell: job summary, annotations and comment, none of which may stop another one or the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from trainscope.core.errors import GitHubError, TrainscopeError
from trainscope.github.annotations import annotate
from trainscope.github.api import Api
from trainscope.github.artifact import MAX_ZIP, Bundle, read_zip
from trainscope.github.comment import Comments, Posted, is_clean, is_read_only, marker_of
from trainscope.github.fitting import comment_text, summary_text
from trainscope.github.inputs import Inputs
from trainscope.github.job import Job, PullRequest, part_of
from trainscope.github.pull_requests import artifact_of_run, current_head, pull_request_of_run
from trainscope.github.told import Links, pieces_of
from trainscope.github.workflow_commands import append, command

TITLE = "trainscope"


@dataclass(frozen=True, slots=True)
class Reported:
    """What was told where."""

    commands: tuple[str, ...]
    """Lines for the runner: annotations, and what went wrong in telling."""
    comment_url: str = ""


def report(bundle: Bundle, inputs: Inputs, job: Job, api: Api, summary: Path | None) -> Reported:
    """Write the summary, list the annotations and write the comment of a check.

    Parameters
    ----------
    summary : Path, optional
        The runner's file for it.

    Raises
    ------
    ConfigError
        If an input is wrong.
    """
    pieces = pieces_of(bundle, Links(job.run_url, inputs.site_url))
    mode, folder = inputs.comment("never"), job.workspace / inputs.text("working-directory", ".")
    lines = annotate(bundle, inputs.annotations, job.workspace, folder)
    lines += [command("warning", f"left out of the report: {one}", title=TITLE) for one in bundle.dropped]
    if inputs.flag("summary", default=True) and summary is not None:
        lines += _attempt("the job summary", lambda: append(summary, summary_text(pieces)))
    url = ""
    if mode != "never" and job.pull_request is not None:
        text = comment_text(pieces, marker_of(inputs.key))
        posted, said = _comment(bundle, text, mode, inputs, job, api, job.pull_request)
        lines, url = [*lines, *said], posted.url
    return Reported(tuple(lines), url)


def comment_on_run(inputs: Inputs, job: Job, api: Api) -> Reported:
    """Write the comment of the workflow run that this one was started by, from its artifact.

    The artifact is whatever a pull request made of it: it is checked, never unpacked, and the comment is made here.

    Raises
    ------
    ConfigError
        If an input is wrong, or this job was not started by a workflow run.
    ReadError
        If the artifact is no bundle.
    GitHubError
        If GitHub refuses, or cannot be reached.
    """
    mode = inputs.comment("auto")
    if mode == "never":
        return _nothing("the input comment says never")
    run_id, pull = pull_request_of_run(api, job)
    if pull is None:
        return _nothing(f"run {run_id} has no open pull request that is still at its commit")
    name, key = inputs.artifact_name, inputs.key
    raw = artifact_of_run(api, job.repository, run_id, name, MAX_ZIP)
    if raw is None:
        return _nothing(f"run {run_id} left no artifact called {name}")
    bundle = read_zip(raw, f"artifact {name}")
    # Name and commit are the event's word, not the artifact's: another check's comment is not to be had.
    result = bundle.result.model_copy(update={"key": key, "head": pull.head})
    bundle = replace(bundle, result=result)
    links = Links(f"{job.remote}/actions/runs/{run_id}", inputs.site_url, _disagreement(bundle, job))
    text = comment_text(pieces_of(bundle, links), marker_of(key))
    posted, said = _comment(bundle, text, mode, inputs, job, api, pull)
    return Reported(tuple(said), posted.url)


def _disagreement(bundle: Bundle, job: Job) -> str:
    """Return how the run ended where that is not what its report says; empty where they agree."""
    ended = part_of(job.event, "workflow_run", "conclusion")
    wanted = "success" if bundle.result.verdict == "pass" else "failure"
    return ended if isinstance(ended, str) and ended != wanted and ended.isascii() and ended.isidentifier() else ""


def _comment(
    bundle: Bundle, text: str, mode: str, inputs: Inputs, job: Job, api: Api, pull: PullRequest
) -> tuple[Posted, list[str]]:
    marker = marker_of(inputs.key)
    level = "warning" if mode == "always" else "notice"
    try:
        if current_head(api, job.repository, pull.number) not in (pull.head, ""):
            return Posted("stale"), [command("notice", "no comment: the pull request has moved on", title=TITLE)]
        create = mode == "always" or not is_clean(bundle)
        posted = Comments(api, job.repository, pull.number, inputs.comment_author).put(text, marker, create=create)
    except GitHubError as error:
        if not is_read_only(error):
            return Posted("failed"), [command("warning", f"the comment was not written: {error}", title=TITLE)]
        said = (
            f"no comment: the token may not write one ({error}). On pull requests from forks and of Dependabot it "
            "never may; add the workflow with trainscope/action/comment. Otherwise give the job pull-requests: write"
        )
        return Posted("read only"), [command(level, said, title=TITLE)]
    return posted, []


def _attempt(what: str, act: Callable[[], object]) -> list[str]:
    try:
        act()
    except TrainscopeError as error:
        return [command("warning", f"{what} was not written: {error}", title=TITLE)]
    return []


def _nothing(why: str) -> Reported:
    return Reported((command("notice", f"no comment: {why}", title=TITLE),))

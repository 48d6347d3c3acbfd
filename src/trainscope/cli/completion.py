"""``trainscope completion``: print a shell completion script."""

from __future__ import annotations

import click

from trainscope.cli.exit_codes import ExitCode
from trainscope.cli.output import write_stdout


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> ExitCode:
    """Print a shell completion script.

    \b
    bash:  eval "$(trainscope completion bash)"      in ~/.bashrc
    zsh:   eval "$(trainscope completion zsh)"       in ~/.zshrc
    fish:  trainscope completion fish | source       in ~/.config/fish/config.fish
    """  # noqa: D301 (click looks for the control character itself)
    from click.shell_completion import get_completion_class

    from trainscope.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    written = write_stdout(kind(cli, {}, "trainscope", "_TRAINSCOPE_COMPLETE").source())
    return ExitCode.PASS if written else ExitCode.CANNOT_JUDGE

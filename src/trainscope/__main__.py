"""Run the command line: as the ``trainscope`` command, and with ``python -m trainscope``.

Nothing else is imported before :func:`main` runs, so that Ctrl-C has its exit code while the libraries load too.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``trainscope`` command."""
    try:
        from trainscope.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

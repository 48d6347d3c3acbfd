"""Run the command line with ``python -m trainscope``."""

from trainscope.cli.main import main

main()

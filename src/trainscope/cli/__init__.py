"""The command line: the only room that knows click, exit codes and standard output."""

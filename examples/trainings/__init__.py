"""Small real trainings, each with one real fault, that write the logs in ``examples/logs``."""

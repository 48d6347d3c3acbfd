"""The ground floor: Run, Finding, metric names, settings, errors. Knows nothing of files or formats."""

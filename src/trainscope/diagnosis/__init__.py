"""Says why: compares a run with its baseline, one question a module."""

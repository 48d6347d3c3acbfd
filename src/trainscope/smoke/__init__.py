"""Runs any training script unchanged, with the recorder injected, and turns what it saw into a run directory."""

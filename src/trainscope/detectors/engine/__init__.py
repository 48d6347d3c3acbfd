"""Measures that several detectors share. Arrays and series in, events out; no findings, no wording."""

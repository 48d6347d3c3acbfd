"""The bench of the detectors: synthetic truth, rules that other tools ship, real logs beside other tools."""

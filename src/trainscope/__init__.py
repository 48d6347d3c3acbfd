"""Catch broken machine-learning training runs before they burn GPU-days, and say why they broke."""

__version__ = "0.1.0"

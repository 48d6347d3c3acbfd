"""When has noise grown? Limits that the live detector and the one of logs share.

The noise of a window is the median of its changes from value to value. It is compared with the largest of all earlier
windows of the same length: noise is never quite steady, and what a run has shown before is no news.
"""

from __future__ import annotations

LIMITS = ((25, 2.5), (50, 1.9), (100, 1.6))
"""(window, times the largest before) from which on noise has grown. In 300 healthy runs of 1,600 steps, five kinds of
noise, the largest were 1.55, 1.35 and 1.38; in 170 public and made-up logs one healthy one came to 2.0, of which the
level had risen a hundredfold."""
START = 200
"""Values that are not judged: the noise of a cross-entropy is small while all predictions are alike."""
FALLEN = 0.95
"""A level below this share of the one before is a loss that learns at last, and noise of another kind comes with it."""
LEAST = 0.015
"""Smallest noise worth a finding, as a fraction of the level: two standard deviations are the 3 % of a spike."""
MEDIAN_CHANGE = 0.9539
"""Median of the absolute difference of two draws from a Gaussian law of standard deviation 1."""

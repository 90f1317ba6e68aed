"""What a search of levels can look for, and how much it asks for at once; who plans a sweep reads it."""

CROSSOVER = "crossover"
"""Up to which level an arm beats its baseline."""
SLO = "slo"
"""The largest level within the limits of a service level."""
SEARCHES = (CROSSOVER, SLO)

LARGEST = 3
"""Levels of an arm in one round, at most: an engine start is worth several."""

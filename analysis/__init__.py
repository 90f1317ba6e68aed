"""What the numbers mean: pairs, verdicts, crossover, report. Reads results only."""

from analysis.frame import Sweep, cells_frame, load_sweep

__all__ = ["Sweep", "cells_frame", "load_sweep"]

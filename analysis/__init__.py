"""What the numbers mean: pairs, verdicts, crossover, report. Reads results only."""

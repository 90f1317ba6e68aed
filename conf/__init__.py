"""What to run: Hydra configuration groups. No logic."""

"""What happens on a node: workloads, replay, measurement, one block. Imports `engines` only."""

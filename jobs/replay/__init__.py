"""The load process and its wire format. Nothing here may import ray, mlflow, pandas, pyarrow, hydra or torch."""

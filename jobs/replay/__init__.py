"""The load process and its wire format. Imports no ray, mlflow, pandas, pyarrow, hydra or torch."""

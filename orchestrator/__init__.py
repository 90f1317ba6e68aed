"""Decides what runs where, drives Ray, keeps the ledger and the MLflow view."""

"""Workloads: importers (one module a format), and conversations as frozen tokens."""

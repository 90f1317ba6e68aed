"""Definitions of the measured figures: small functions over one replay's requests, chunks and counters."""

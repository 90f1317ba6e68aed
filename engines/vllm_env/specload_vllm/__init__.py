"""The part of specload that runs inside vLLM's environment, and the only one that imports torch or vLLM."""

__version__ = "0.1.0"

"""The emulated engine: a real HTTP server whose step times come from a model of hardware."""

EMULATOR_VERSION = "emulated-1.0"
"""Version the emulator reports everywhere. Raise it with every change that moves a figure."""

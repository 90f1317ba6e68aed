"""Where a step's time goes: an engine held in decode, its steps timed, and traced where it can be."""

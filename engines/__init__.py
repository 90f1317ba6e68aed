"""How one serving engine is started, watched, read and stopped. Imports nothing else of this project."""

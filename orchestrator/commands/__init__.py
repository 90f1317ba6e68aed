"""The commands of `specload`, one module each: `run(arguments) -> exit code`."""

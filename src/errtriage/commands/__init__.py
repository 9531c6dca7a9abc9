"""One module per command: options to calls to exit codes."""

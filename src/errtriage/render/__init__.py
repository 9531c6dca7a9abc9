"""One module per output format. Only ``text`` imports Rich."""

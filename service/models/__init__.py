"""Which models are served, by name and version, and where they come from."""

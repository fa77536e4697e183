"""Speed, accuracy and load against named peers, each a module with --json."""

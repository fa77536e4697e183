"""From a request or a stream to an answer in time."""

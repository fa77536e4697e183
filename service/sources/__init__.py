"""Where observations come from besides `POST /v1/observations`."""

"""Forecasts of files without a server: `rancast forecast`."""

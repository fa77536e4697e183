"""Protocols that model servers speak: KServe V1 and V2, KServe's time-series API."""

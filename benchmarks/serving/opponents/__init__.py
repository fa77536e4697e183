"""Servers of others around the same predictor, each written as its documentation says."""

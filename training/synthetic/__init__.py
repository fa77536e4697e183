"""Synthetic cells, drawn online while a model trains."""

from training.synthetic.batch import BatchSpec, SyntheticBatch, sample_batch

__all__ = ["BatchSpec", "SyntheticBatch", "sample_batch"]

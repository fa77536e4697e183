"""Synthetic cells, drawn online while a model trains."""

from training.synthetic.batch import BatchSpec, SyntheticBatch, sample_batch

GENERATOR = "3"
"""Version of what is drawn: a run does not go on, and a card is not true, with another one."""

__all__ = ["GENERATOR", "BatchSpec", "SyntheticBatch", "sample_batch"]

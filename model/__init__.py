"""From a window of samples to quantiles: attention, scaling, tokens, forecaster, checkpoints."""

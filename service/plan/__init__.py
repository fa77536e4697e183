"""Where this node can be placed: what its forecasts cost, and which control loops that fits."""

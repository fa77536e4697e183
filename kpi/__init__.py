"""Cell KPIs: what they are, how they arrive, and the bounded store that keeps them."""

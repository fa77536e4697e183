"""Who may ask what, how often: tokens, scopes, rate limits, and the door that applies them."""

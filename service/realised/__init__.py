"""How good the forecasts of stored cells turned out to be."""

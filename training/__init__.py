"""From files to a checkpoint and a report: data sets, synthetic cells, fit, backtest."""

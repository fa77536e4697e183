"""What a backtest found, for people (a page) and for programs (tables)."""

from training.report.page import write_report
from training.report.tables import ScoresTable, write_hours, write_worst

__all__ = ["ScoresTable", "write_hours", "write_report", "write_worst"]

"""Figures, reports and tables: what people look at."""

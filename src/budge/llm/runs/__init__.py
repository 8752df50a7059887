"""Draws made and kept: what is asked, in which order, when it stops, what it cost; Inspect AI does the asking."""

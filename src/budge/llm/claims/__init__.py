"""What may be claimed from answers: tests, differences, comparisons, corrections, tables."""

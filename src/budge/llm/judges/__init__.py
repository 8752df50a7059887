"""Ways an answer becomes a hit or not: one file a kind."""

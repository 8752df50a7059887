"""Ways a prompt may be rewritten: one file a kind."""

"""Language models: prompts are inputs, a rewrite is an action, decoding is the downstream effect, the judge is part of f."""

"""The paper's tabular studies, one program each; `budge study NAME` runs them."""

"""What Inspect AI finds through the entry point ``inspect_ai``: the solver `budge/rewrite`, the metric `budge/responsiveness`, the task `budge/under`."""

from budge.llm.inspect_ext.metric import responsiveness
from budge.llm.inspect_ext.rewriting import rewrite
from budge.llm.inspect_ext.under import drawn, under, wrap

__all__ = ["drawn", "responsiveness", "rewrite", "under", "wrap"]

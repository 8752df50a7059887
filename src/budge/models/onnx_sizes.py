"""How much memory and work an ONNX graph takes, computed from the shapes that go in before any engine opens it.

A small file can state tensors of any size: ``ConstantOfShape``, a chain of ``Concat`` of a tensor with itself, a product of a column and a row.
onnxruntime would make them while it opens the file (it folds constants) or while it predicts. So only operators whose output sizes are known
(`onnx_rules`) are allowed, and shapes are carried through the graph for the very number of rows that is asked.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping

from budge.errors import ModelError
from budge.models.limits import ONNX_NODES, ONNX_TEXT
from budge.models.onnx_graph import Graph, GraphFacts, Node
from budge.models.onnx_rules import MOST_DIMS, OPERATORS, Call, Cost, Shape, TooMuchError, UnknownSizeError, Value, axis_of

__all__ = ["REMEDY", "check_operators", "fits", "walk"]

Values = MutableMapping[str, Value]
OLDEST = 9  #: version of ONNX's operators
STEP = 1000  #: work of starting one operation, in multiplications
ODD = "the operator is used in a way that its rule does not cover"
REMEDY = "if you trust whoever made it, open it with onnxruntime.InferenceSession(path) and pass the session"


def check_operators(facts: GraphFacts, where: str) -> None:
    """Raise if the model holds what has no bound: functions of its own, sparse tensors, too many operations."""
    if facts.functions:
        raise ModelError("the model defines functions of its own", where=where, remedy=f"inline them (onnx.inliner); {REMEDY}")
    if facts.sparse:
        raise ModelError("the model holds sparse tensors", where=where, remedy=f"save it with dense ones; {REMEDY}")
    if facts.longest_text > ONNX_TEXT:
        raise ModelError(f"the model holds a text longer than {ONNX_TEXT:,} bytes (ONNX_TEXT)", where=where, remedy=REMEDY)
    if facts.opset < OLDEST:
        what = f"the model is written in version {facts.opset} of ONNX's operators, and {OLDEST} is the oldest that is read"
        raise ModelError(what, where=where, remedy=f"convert it again with a later target_opset; {REMEDY}")
    if (nodes := _count(facts.graph)) > ONNX_NODES:
        raise ModelError(f"the model has more than {ONNX_NODES:,} operations (ONNX_NODES)", where=where, got=f"{nodes:,}", remedy=REMEDY)


def fits(facts: GraphFacts, shapes: Mapping[str, Shape], *, cells: int, work: int, where: str = "onnx") -> bool:
    """Return whether the graph makes at most so many cells and does at most so much work; an input that is not given is one row.

    Raises
    ------
    ModelError
        If the size of a result is not known, or a tree is none.
    """
    weight = 4 + facts.longest_text // 8 if facts.longest_text > 16 else 1  # a cell may hold any text of the file
    cost = Cost(cells // weight, work)
    given = {}
    for name, dims in facts.graph.inputs.items():
        cost.open_width |= name not in shapes and any(n is None for n in dims[1:])
        given[name] = Value(shapes[name] if name in shapes else tuple(1 if n is None or n < 0 else n for n in dims))
    try:
        walk(facts.graph, given, cost, 1, where)
    except TooMuchError:
        return False
    return True


def _count(graph: Graph) -> int:
    inner = (deep for node in graph.nodes for attribute in node.attributes.values() for deep in attribute.graphs)
    return len(graph.nodes) + sum(map(_count, inner))


def walk(graph: Graph, given: Mapping[str, Value], cost: Cost, times: int, where: str, outer: Values | None = None) -> Values:
    """Carry the shapes through a graph that is run so many times, one after the other; return all its values by name."""
    values: Values = ChainMap(dict(given)) if outer is None else ChainMap(dict(given), outer)
    for name, tensor in graph.constants.items():
        values[name] = Value(tensor.dims, known=tensor.values)
        cost.add(values[name].cells, 0)
    for i, node in enumerate(graph.nodes):
        place = f"{where}, operation {i + 1} ({ascii(node.kind[:60])[1:-1]})"
        try:
            inputs = [values[name] if name else None for name in node.inputs]
            made = _outputs(node, inputs, values, cost, times, where)
        except KeyError as error:
            raise ModelError(f"the input {str(error.args[0])[:60]!r} is made by no earlier operation", where=place) from None
        except (UnknownSizeError, IndexError, ValueError, AttributeError, TypeError, OverflowError) as error:
            what = str(error) if isinstance(error, UnknownSizeError) else ODD
            raise ModelError(what, where=place, remedy=REMEDY) from error
        for name, value in zip(node.outputs, made):
            if len(value.shape) > MOST_DIMS:
                raise ModelError(f"a tensor has more than {MOST_DIMS} dimensions", where=place)
            values[name] = value
            cost.add(value.cells, times * value.cells)
        cost.add(0, times * (STEP + sum(value.cells for value in inputs if value is not None)))
    return values


def _outputs(node: Node, inputs: list[Value | None], values: Values, cost: Cost, times: int, where: str) -> list[Value]:
    if node.kind == "Scan":
        return _scan(node, inputs, values, cost, times, where)
    rule = OPERATORS.get(node.kind)
    if rule is None:
        raise UnknownSizeError("the operator is not among those whose results have a known size")
    made = rule(Call(node, inputs, cost, times))
    return made if isinstance(made, list) else [made]  # further outputs, such as a mean, are for training


def _scan(node: Node, inputs: list[Value | None], values: Values, cost: Cost, times: int, where: str) -> list[Value]:
    """Run a graph once for each row of its scanned inputs; what it hands on keeps its shape, what it collects is stacked."""
    call = Call(node, inputs, cost, times)
    number = call.number("num_scan_inputs", 0)
    (body,) = node.attributes["body"].graphs
    if not 1 <= number <= len(inputs) == len(body.inputs) or any(call.ints("scan_output_axes") or ()):
        raise UnknownSizeError(ODD)
    everything = [call.input(i) for i in range(len(inputs))]
    states, scanned = everything[: len(inputs) - number], everything[len(inputs) - number :]
    at = [axis_of(axis, len(value.shape)) for axis, value in zip(call.ints("scan_input_axes") or [0] * number, scanned, strict=True)]
    rounds = max(value.shape[axis] for axis, value in zip(at, scanned))
    slices = [Value(value.shape[:axis] + value.shape[axis + 1 :], value.exact) for axis, value in zip(at, scanned)]
    held = [Value(value.shape, value.exact) for value in states]  # its numbers may change from one round to the next
    inner = walk(body, dict(zip(body.inputs, held + slices)), cost, times * max(rounds, 1), f"{where}, Scan", values)
    made = [inner[name] for name in body.outputs]
    for state, value in zip(states, made):
        if value.shape != state.shape:
            raise UnknownSizeError("a value that is handed on changes its shape")
    exact = all(value.exact for value in scanned)
    return held + [Value((rounds, *value.shape), exact and value.exact) for value in made[len(states) :]]

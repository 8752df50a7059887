"""The solver behind its small interface, and the program of a part: every answer against brute force over all actions."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "constraints"))

from brute import Brute, limits

import budge
from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Predicate, Rule, Switch
from budge.errors import DrawError, EmptyError, InputError, SolverError, TooLargeError
from budge.expressions import Linear, Row
from budge.parts import Part
from budge.program import solver
from budge.program.clash import _unlimited, clash
from budge.program.encoding import EncodedPart
from budge.program.milp import PartProgram
from budge.program.paper import rejection_sample
from budge.program.solver import Program, Solution, register, solvers
from budge.testing import random_candidates
from budge.testing.strategies import interaction_models, starts

QUIET = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def whole(name: str, low: int, high: int, **options: Any) -> Feature:
    return Feature(name, "integer", bounds=(low, high), **options)


def all_moves(part: Part, x: dict[str, float]) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Every feasible (action, change) of a discrete part, by trying all changes that its linkages could lead to."""
    im = InteractionModel(part.features, [*part.linkages, *part.constraints])
    brute = Brute(im, x)
    spans = []
    for f in part.features:
        down, up = limits(f, x[f.name])
        for link in part.links.get(f.name, ()):
            ends = [float(link.targets[f.name]) * end for end in limits(part.by_name[link.source], x[link.source])]
            down, up = down + min(0.0, *ends), up + max(0.0, *ends)
        spans.append([float(v) for v in range(int(np.floor(down)), int(np.ceil(up)) + 1)])
    for values in product(*spans):
        change = dict(zip(part.names, values))
        for action in brute.actions(change):
            yield action, change


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(solver._ENTRIES)
    yield
    solver._ENTRIES.clear()
    solver._ENTRIES.update(before)


# -- the interface ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["highs", "scipy"])
def test_solutions_proofs_and_changed_bounds(name: str) -> None:
    program = Program(solver=name)
    x, y = program.variable(0, 9, integer=True), program.variable(-1.5, 9)
    program.row({x: 2.0, y: 1.0}, lower=7.5)
    found = program.solve({x: 3.0, y: 1.0})
    assert found is not None
    assert found.objective == pytest.approx(7.5, abs=1e-5)
    program.bound(y, -1.5, 1.0)
    found = program.solve({x: 3.0, y: 1.0})
    assert found is not None
    assert found.values == pytest.approx([4.0, -0.5], abs=1e-5)
    program.pin(x, 3.0)
    assert program.solve() is None  # 6 + 1 < 7.5
    program.reset()
    assert program.solve() is not None
    program.row({x: 1.0}, upper=2.0)  # a new row after a solve
    found = program.solve({x: -1.0})
    assert found is not None
    assert found.values[0] == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["highs", "scipy"])
def test_whole_variables_with_fractional_bounds(name: str) -> None:
    """HiGHS's presolve calls this infeasible if the bound 0.5 of a whole variable is passed on as it is."""
    program = Program(solver=name)
    columns = [
        program.variable(low, high, integer=True)
        for low, high in [(0, 0), (-1, 0), (0, 1), (-1, 0), (-1, -1), (0, 0.5), (0, 1), (0, 1), (0, 0), (0, 0)]
    ]
    assert program.limits(columns[5]) == (0.0, 0.0)
    program.row({4: 1.0, 1: -1.0, 3: -1.0}, lower=0, upper=0)
    program.row({0: -1.0, 3: -1.0}, upper=0)
    program.row({5: 1.0, 6: 0.5}, upper=0.5)
    program.row({6: 1.0, 7: 1.0}, lower=1)
    program.row({8: 1.0, 2: -1.0, 5: -1.0}, lower=0, upper=0)
    assert program.solve() is not None


def test_programs_without_variables_or_rows() -> None:
    empty = Program()
    assert empty.solve() is not None
    empty.row({}, lower=1.0)
    assert empty.solve() is None
    loose = Program()
    a, b = loose.variable(-2, 3), loose.variable(1, 4, integer=True)
    found = loose.solve({a: -1.0, b: 1.0})
    assert found is not None
    assert found.values.tolist() == [3.0, 1.0]
    assert loose.solves == 0


def hard(time_limit: float, name: str) -> Program:
    """A market split: feasible or not, no solver tells in no time."""
    rng = np.random.default_rng(5)
    program = Program(solver=name, time_limit=time_limit)
    columns = [program.variable(0, 1, integer=True) for _ in range(50)]
    for _ in range(6):
        weights = rng.integers(0, 100, 50).astype(float)
        side = float(np.floor(weights.sum() / 2))
        program.row(dict(zip(columns, weights)), lower=side, upper=side)
    return program


@pytest.mark.parametrize("name", ["highs", "scipy"])
def test_a_time_out_is_never_read_as_infeasible(name: str) -> None:
    with pytest.raises(SolverError, match="no answer"):
        hard(0.05, name).solve()


@pytest.mark.parametrize("name", ["highs", "scipy"])
def test_a_search_stops_at_its_limits_and_states_what_is_known(name: str) -> None:
    for limit, status in (({"nodes": 5}, "nodes"), ({"seconds": 0.05}, "time")):
        found = hard(60.0, name).search(**limit)
        assert (found.status, found.values, found.objective) == (status, None, np.inf)
        assert found.bound < np.inf
    program = Program(solver=name)
    columns = [program.variable(0, 9, integer=True) for _ in range(5)]
    program.row(dict.fromkeys(columns, 3.0), upper=20.5)
    best = program.search(dict.fromkeys(columns, -1.0))
    assert (best.status, best.objective, best.bound) == ("optimal", -6.0, -6.0)
    enough = program.search(dict.fromkeys(columns, -1.0), target=-2.0)
    assert enough.values is not None
    assert enough.objective <= -2.0
    again = program.solve(dict.fromkeys(columns, -1.0))  # the limits are gone
    assert again is not None
    assert again.objective == -6.0
    program.row(dict.fromkeys(columns, 1.0), lower=7.0)
    assert program.search(dict.fromkeys(columns, 1.0)).status == "infeasible"
    program.bound(columns[0], 5.0, 4.0)
    assert program.search().status == "infeasible"
    assert Program(solver=name).search().status == "optimal"


def test_a_search_doubts_that_a_program_is_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS called a program of the proofs infeasible with an objective and found its point without one."""
    highspy = pytest.importorskip("highspy")
    program = Program(solver="highs")
    x, y = program.variable(0, 9, integer=True), program.variable(0, 9)
    program.row({x: 1.0, y: 1.0}, lower=2.0)
    right = solver._Highs._asked

    def wrong(self: Any, lower: Any, upper: Any, cost: Any) -> Any:
        status = right(self, lower, upper, cost)
        return highspy.HighsModelStatus.kInfeasible if cost.any() else status

    monkeypatch.setattr(solver._Highs, "_asked", wrong)
    found = program.search({x: 1.0})
    assert found.status == "nodes"
    assert found.values is not None
    assert found.bound == -np.inf


def test_a_solver_without_a_search_solves(registered: None) -> None:
    class Plain:
        def __init__(self, program: Program):
            self.solve = solver._SciPy(program).solve

    register("plain", Plain, prefer=True)
    program = Program()
    x = program.variable(0, 9, integer=True)
    program.row({x: 2.0}, lower=7.0)
    assert program.search({x: 1.0}, nodes=1).objective == 4.0


def test_parts_can_share_a_program_and_close_strict_relations() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 10)), Feature("b", "real", bounds=(0, 10))], [Rule("a < 5"), Rule("b > 2")])
    for closed, ends in ((False, (5.0, 2.0)), (True, (5.0, 2.0))):
        program = Program()
        first, second = (EncodedPart(part, {part.names[0]: 3.0}, program=program, closed=closed) for part in im.parts)
        assert first.program is second.program
        assert first.strict
        (high,), (low,) = first.form("value", "a").terms, second.form("value", "b").terms
        found = program.solve({high: -1.0, low: 1.0})
        assert found is not None
        reached = found.values + 3.0
        assert reached == pytest.approx(ends, abs=1e-6)
        assert bool(reached[0] < ends[0]) is not closed


@pytest.mark.parametrize("trouble", ["kSolveError", "kUnknown", "kPresolveError", "kPostsolveError", "kIterationLimit", "kUnbounded"])
def test_numerical_trouble_is_never_read_as_infeasible(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    highspy = pytest.importorskip("highspy")
    im = InteractionModel([Feature(n, "binary") for n in "abc"], [OneHot(("a", "b", "c"))])
    program = PartProgram(im.parts[0], {"a": 1.0, "b": 0.0, "c": 0.0}, solver="highs")
    monkeypatch.setattr(solver._Highs, "_run", lambda self: getattr(highspy.HighsModelStatus, trouble))
    for ask in (program.is_empty, lambda: program.feasible({"a": -1, "b": 1}), lambda: program.bounds("a")):
        with pytest.raises(SolverError, match="no answer"):
            ask()


@pytest.mark.parametrize("status", [3, 4])
def test_numerical_trouble_of_the_fallback_is_never_read_as_infeasible(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    im = InteractionModel([Feature(n, "binary") for n in "abc"], [OneHot(("a", "b", "c"))])
    program = PartProgram(im.parts[0], {"a": 1.0, "b": 0.0, "c": 0.0}, solver="scipy")
    answer = scipy.optimize.OptimizeResult(status=status, x=None, fun=None, message="numerical difficulties")
    monkeypatch.setattr(scipy.optimize, "milp", lambda *_, **__: answer)
    with pytest.raises(SolverError, match="no answer"):
        program.is_empty()


def test_a_part_that_times_out_says_so_in_every_question(registered: None) -> None:
    class Late:
        def solve(self, lower: Any, upper: Any, cost: Any) -> Solution | None:
            raise SolverError("the solver came to no answer", got="Time limit reached")

    register("late", lambda program: Late())
    im = InteractionModel([Feature(n, "binary") for n in "abc"], [OneHot(("a", "b", "c"))])
    x = {"a": 1.0, "b": 0.0, "c": 0.0}
    program = PartProgram(im.parts[0], x, solver="late")
    questions: list[Callable[[], object]] = [
        program.is_empty,
        program.nearest,
        lambda: program.nearest(moved=True),
        lambda: program.feasible({"a": -1, "b": 1}),
        lambda: program.bounds("a"),
        lambda: list(program.enumerate(10)),
    ]
    for ask in questions:
        with pytest.raises(SolverError):
            ask()
    register("late", lambda program: Late(), prefer=True)
    with pytest.raises(SolverError):
        clash(im.parts[0], x)
    with pytest.raises(SolverError):
        rejection_sample(im.parts[0], x, 5, np.random.default_rng(0))


def test_another_solver_can_be_plugged_in(registered: None) -> None:
    asked = []

    class Counting:
        def __init__(self, program: Program):
            self.inner = solver._SciPy(program)

        def solve(self, lower: Any, upper: Any, cost: Any) -> Solution | None:
            asked.append(cost)
            return self.inner.solve(lower, upper, cost)

    register("counting", Counting, prefer=True)
    assert solvers()[0] == "counting"
    im = InteractionModel([Feature(n, "binary") for n in "abc"], [OneHot(("a", "b", "c"))])
    assert PartProgram(im.parts[0], {"a": 1.0, "b": 0.0, "c": 0.0}).feasible({"a": -1, "b": 1})
    assert asked


def test_without_highspy_scipy_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    right = solver._importable
    monkeypatch.setattr(solver, "_importable", lambda module: module != "highspy" and right(module))
    assert Program().solver == "scipy"
    monkeypatch.setattr(solver, "_importable", lambda module: False)
    with pytest.raises(SolverError, match="no solver is installed"):
        Program()
    with pytest.raises(SolverError, match="no such solver"):
        Program(solver="hihgs")


def test_programs_survive_pickling_and_forking() -> None:
    im = InteractionModel([Feature(n, "binary") for n in "abc"], [OneHot(("a", "b", "c"))])
    program = PartProgram(im.parts[0], {"a": 1.0, "b": 0.0, "c": 0.0})
    assert program.feasible({"a": -1, "b": 1})
    assert not pickle.loads(pickle.dumps(program)).feasible({"a": -1})
    child = multiprocessing.get_context("fork").Process(target=_solve_again, args=(program,))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def _solve_again(program: PartProgram) -> None:
    sys.exit(0 if program.feasible({"a": -1, "c": 1}) and not program.feasible({"a": -1}) else 1)


# -- the program of a part --------------------------------------------------------------------------------------------------


@QUIET
@given(interaction_models(max_features=4), st.data())
def test_emptiness_bounds_nearest_and_enumeration_equal_brute_force(im: InteractionModel, data: st.DataObject) -> None:
    x = im.start(data.draw(starts(im)))
    for part in im.parts:
        moves = list(all_moves(part, x))
        program = PartProgram(part, x)
        found = list(program.enumerate(100_000))
        expected = {tuple(change[n] for n in part.names) for _, change in moves}
        listed = [tuple(change[n] for n in part.names) for change in found]
        assert len(listed) == len(set(listed))
        assert set(listed) == expected
        assert listed == sorted(listed)
        assert program.is_empty() == (not moves)
        nearest = program.nearest()
        if not moves:
            assert nearest is None
            with pytest.raises(EmptyError):
                program.bounds(part.names[0])
            continue
        for i, name in enumerate(part.names):
            column = [change[i] for change in expected]
            assert program.bounds(name) == (min(column), max(column))
        assert nearest is not None
        assert nearest.exact
        assert nearest.distance == pytest.approx(min(sum(map(abs, action.values())) for action, _ in moves))
        assert (dict(nearest.action), dict(nearest.change)) in moves
        away = [sum(map(abs, action.values())) for action, change in moves if any(change.values())]
        other = program.nearest(moved=True)
        assert (other is None) == (not away)
        if other is not None:
            assert other.distance == pytest.approx(min(away))
            assert (dict(other.action), dict(other.change)) in moves


@settings(QUIET, max_examples=25)
@given(interaction_models(max_features=5, continuous=True), st.data())
def test_both_solvers_give_one_answer(im: InteractionModel, data: st.DataObject) -> None:
    x = im.start(data.draw(starts(im)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    for part in im.parts:
        one, other = PartProgram(part, x), PartProgram(part, x, solver="scipy")
        _, change = random_candidates(part, x, 12, rng)
        for i in range(12):
            candidate = {name: float(column[i]) for name, column in change.items()}
            assert one.feasible(candidate) == other.feasible(candidate), (im.constraints, x, candidate)


@settings(QUIET, max_examples=150)
@given(interaction_models(max_features=4, max_constraints=4), st.data())
def test_what_clashes_is_minimal(im: InteractionModel, data: st.DataObject) -> None:
    x = im.start(data.draw(starts(im)))
    for part in im.parts:
        labels = clash(part, x)
        assert bool(labels) == (next(all_moves(part, x), None) is None)
        items: list[Any] = [*part.features, *part.linkages, *part.constraints]
        called = {id(item): f"limits of {item.name}" if isinstance(item, Feature) else item.label for item in items}
        assert set(labels) <= set(called.values())
        kept = _told(items, called, labels)
        for gone in kept:
            rest = [item for item in kept if item is not gone]
            relaxed = _only(part, x, rest)
            move = PartProgram(relaxed, x).nearest()
            assert move is not None, f"{labels} still clash without {called[id(gone)]}"
            action, change = ({k: np.asarray(v) for k, v in side.items()} for side in (move.action, move.change))
            assert bool(relaxed.holds({k: np.asarray(v) for k, v in x.items() if k in part.names}, action, change))


def _told(items: list[Any], called: dict[int, str], labels: tuple[str, ...]) -> list[Any]:
    """The items that the labels name; of twins as many as are named, the last ones (they are left out in order)."""
    kept: list[Any] = []
    wanted = list(labels)
    for item in reversed(items):
        if called[id(item)] in wanted:
            wanted.remove(called[id(item)])
            kept.insert(0, item)
    return kept


def _only(part: Part, x: dict[str, float], kept: list[Any]) -> Part:
    """The part with only these limits and constraints."""
    ids = {id(item) for item in kept}
    features = tuple(f if id(f) in ids else _unlimited(f, x[f.name], 5000.0) for f in part.features)
    by_name = {f.name: f for f in features}
    bound = {id(link): link.bind(by_name) for link in part.linkages if id(link) in ids}
    links = {name: tuple(bound[id(k)] for k in many if id(k) in ids) for name, many in part.links.items()}
    constraints = tuple(c.bind(by_name) for c in part.constraints if id(c) in ids)
    return Part(features, constraints, {name: many for name, many in links.items() if many})


def test_a_clash_names_its_two_sides() -> None:
    im = InteractionModel(
        [whole("age", 18, 100, direction="increase"), whole("kids", 0, 5), whole("rent", 0, 9)],
        [
            Rule("age <= 30 or kids > 9", name="young"),
            LinearConstraint({"kids": 1, "rent": 1}, "<=", 9),
            IfThen("kids >= 1", "age >= 18"),
        ],
    )
    part = im.parts[0]
    assert clash(part, {"age": 25.0, "kids": 0.0, "rent": 0.0}) == ()
    assert clash(part, {"age": 40.0, "kids": 0.0, "rent": 0.0}) == ("limits of age", "limits of kids", "young")


def test_the_nearest_action_with_a_target() -> None:
    im = InteractionModel(
        [whole("years", 0, 9), whole("age", 18, 99, actionable=False), Feature("income", "real", bounds=(0, 100))],
        [DirectionalLinkage("years", {"age": 1}), Rule("income >= 10 * years")],
    )
    program = PartProgram(im.parts[0], {"years": 2.0, "age": 30.0, "income": 25.0})
    move = program.nearest(Row(Linear({("value", "age"): 1.0}, -32.0), ">="))
    assert move is not None
    assert move.action == pytest.approx({"years": 2.0, "age": 0.0, "income": 15.0})
    assert move.change == pytest.approx({"years": 2.0, "age": 2.0, "income": 15.0})
    assert move.distance == pytest.approx(17.0)
    assert program.nearest(Row(Linear({("value", "age"): 1.0}, -99.0), ">=")) is None
    stay = program.nearest()
    assert stay is not None
    assert stay.distance == 0.0


def test_curved_rules_are_checked_and_searched() -> None:
    features = [whole(n, 0, 6) for n in "abc"]
    im = InteractionModel(
        features, [Rule("a * b == 12 and a ** 2 + c >= 20"), Predicate(("b", "c"), lambda v: (v["b"] + v["c"]) % 3 == 1)]
    )
    x = {"a": 1.0, "b": 1.0, "c": 1.0}
    program = PartProgram(im.parts[0], x)
    assert not program.exact
    moves = list(all_moves(im.parts[0], x))
    assert moves
    assert list(program.enumerate(1000)) == sorted((change for _, change in moves), key=lambda c: tuple(c.values()))
    nearest = program.nearest()
    assert nearest is not None
    assert nearest.distance == min(sum(map(abs, a.values())) for a, _ in moves)
    never = PartProgram(InteractionModel(features, [Rule("a * b == 13 + 0 * c")]).parts[0], x)
    assert never.is_empty()


def test_a_product_with_a_switch_is_linear_once_the_switch_is_known() -> None:
    im = InteractionModel([Feature("job", "binary"), Feature("pay", "real", bounds=(0, 10))], [Rule("pay * job >= 4.5")])
    program = PartProgram(im.parts[0], {"job": 0.0, "pay": 2.0})
    assert not program.exact
    assert not program.is_empty()
    move = program.nearest()
    assert move is not None
    assert move.exact
    assert move.distance == pytest.approx(3.5)
    low, high = program.bounds("pay")
    assert (low, high) == pytest.approx((2.5, 8.0))


def test_what_cannot_be_decided_is_said() -> None:
    features = [Feature("u", "real", bounds=(0, 10)), Feature("v", "real", bounds=(0, 10))]
    curved = InteractionModel(features, [Rule("u * v >= 99"), Rule("u + v <= 19")])
    program = PartProgram(curved.parts[0], {"u": 0.0, "v": 0.0})
    with pytest.raises(SolverError, match="cannot decide"):
        program.is_empty()
    assert program.bounds("u") == pytest.approx((0.0, 10.0))  # wide enough
    impossible = InteractionModel(features, [Rule("u * v >= 9"), Rule("u + v >= 21")])
    assert PartProgram(impossible.parts[0], {"u": 0.0, "v": 0.0}).is_empty()  # what is linear suffices: a proof


def test_enumeration_stops_aloud() -> None:
    im = InteractionModel([whole(n, 0, 9) for n in "ab"], [LinearConstraint({"a": 1, "b": 1}, "==", 9)])
    program = PartProgram(im.parts[0], {"a": 4.0, "b": 5.0})
    assert len(list(program.enumerate(10))) == 10
    with pytest.raises(TooLargeError, match="more than 9"):
        list(program.enumerate(9))
    with pytest.raises(InputError, match="no such feature"):
        program.bounds("c")


def test_configurations_of_a_mixed_part() -> None:
    """Only configurations that leave something to the real feature."""
    im = InteractionModel(
        [whole("n", 0, 5), Feature("r", "real", bounds=(0, 1))], [LinearConstraint({"n": 1, "r": -2}, "==", 0.5)]
    )
    program = PartProgram(im.parts[0], {"n": 0.0, "r": 0.25})
    assert list(program.enumerate(10)) == [{"n": 1.0}, {"n": 2.0}]


def test_rejection_draws_the_feasible_changes_evenly() -> None:
    im = InteractionModel(
        [whole("a", 0, 3), whole("b", 0, 3), Feature("on", "binary")],
        [LinearConstraint({"a": 1, "b": 1}, "<=", 3), Switch("on == 1", ("a",))],
    )
    part, x = im.parts[0], {"a": 1.0, "b": 0.0, "on": 0.0}
    expected = {tuple(change.values()) for _, change in all_moves(part, x)}
    drawn = rejection_sample(part, x, 1500, np.random.default_rng(11))
    seen: dict[tuple[float, ...], int] = dict.fromkeys(expected, 0)
    for values in zip(*(drawn[name].tolist() for name in part.names)):
        seen[values] += 1  # a KeyError is a point outside the set
    mean = 1500 / len(expected)
    statistic = sum((count - mean) ** 2 / mean for count in seen.values())
    from scipy.stats import chi2

    assert chi2.sf(statistic, len(expected) - 1) > 1e-4


def test_rejection_gives_up_aloud() -> None:
    features = [Feature("u", "real", bounds=(0, 1)), Feature("v", "real", bounds=(0, 1))]
    im = InteractionModel(features, [LinearConstraint({"u": 1, "v": 1}, "==", 1)])
    with pytest.raises(DrawError, match="0 of 300 accepted"):
        rejection_sample(im.parts[0], {"u": 0.5, "v": 0.5}, 5, np.random.default_rng(0), 300)


def test_missing_values_and_lists_without_bounds() -> None:
    spread = budge.Feature("k", "integer", distribution=_weights({1: 1, 4: 1}))
    im = InteractionModel(
        [spread, Feature("m", "integer", bounds=(0, 3), missing="fixed"), whole("n", 0, 3)], [Rule("k + n <= 5 or m >= 0")]
    )
    program = PartProgram(im.parts[0], {"k": 2.0, "m": float("nan"), "n": 0.0})
    assert program.bounds("k") == (-1.0, 2.0)
    assert program.feasible({"k": 2.0, "n": 1.0})
    assert not program.feasible({"k": 2.0, "n": 2.0})  # the missing m satisfies nothing
    assert not program.feasible({"m": 1.0})
    with pytest.raises(SolverError, match="beyond"):
        program.feasible({"k": 7.0})


def _weights(table: dict[int, float]) -> Any:
    from budge.distributions import Distribution

    return Distribution.from_spec({"weights": table})


@pytest.mark.parametrize("policy", ["allow", "reject", "clip"])
@pytest.mark.parametrize("relation", ["<=", ">="])
def test_a_whole_target_of_a_fractional_linkage(policy: str, relation: str) -> None:
    """The induced change is real here. Twice the row, which makes its coefficients whole, once led the solver to refuse feasible changes."""
    im = InteractionModel(
        [Feature("d", "binary"), Feature("m", "integer", bounds=(-2, 2), max_decrease=2)],
        [DirectionalLinkage("d", {"m": 0.5}, relation, on_exceed=policy)],  # type: ignore[arg-type]
    )
    for d in (0.0, 1.0):
        x = {"d": d, "m": -1.0}
        program = PartProgram(im.parts[0], x)
        for change in product((-1.0, 0.0, 1.0), range(-4, 6)):
            moved = {"d": change[0], "m": float(change[1])}
            assert program.feasible(moved) == bool(im.feasible(x, {name: [by] for name, by in moved.items()})[0])

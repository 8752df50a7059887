"""Proofs against listing and against draws, and what is unresolved with which reason."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from proof_kit import ANSWER, Triple, judge, random_trees, triples

from budge import Effect, Feature, InteractionModel
from budge.constraints import LinearConstraint, Predicate, Rule
from budge.errors import InputError
from budge.program import solver
from budge.proof import Additive, Column, Trees
from budge.proof.goals import Condition
from budge.proof.leaves import Leaves
from budge.proof.prover import Proof, Prover


def at_least(bound: float):
    return ((Condition(np.ones(1), bound),),)


def check(triple: Triple, proof: Proof) -> str:
    """Assert that a proof does not contradict the points, and return how it came about."""
    if proof.status == "impossible":
        assert not len(triple.hits), (triple.im.constraints, triple.x)
    if proof.status == "possible":
        assert proof.point is not None
        assert triple.ask(proof.point[None])[0]
        assert triple.reaches(proof.point), (triple.im.constraints, triple.x)
    assert (proof.reason is not None) == (proof.status == "unresolved")
    return f"{proof.status} {proof.method} {proof.reason or ''}".strip()


def against_listing(count: int, key: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for triple in triples(count, key):
        proof = Prover(triple.structure, triple.im).prove(triple.start, triple.goal, triple.ask)
        found[check(triple, proof)] += 1
        if proof.status == "possible":
            assert len(triple.hits), (triple.im.constraints, triple.x)
    return found


def against_draws(count: int, key: int, draws: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for triple in triples(count, key, draws):
        found[check(triple, Prover(triple.structure, triple.im).prove(triple.start, triple.goal, triple.ask))] += 1
    return found


def test_proofs_agree_with_listing() -> None:
    found = against_listing(300, 11)
    assert {key.split()[0] for key in found} == {"possible", "impossible"}  # nothing is left open where all is whole
    assert {key.split()[1] for key in found} == {"bound", "boxes", "program"}


@pytest.mark.heavy
def test_proofs_agree_with_listing_of_ten_thousand() -> None:
    found = against_listing(10_000, 12)
    print(sorted(found.items()))
    assert sum(v for k, v in found.items() if k.startswith("unresolved")) <= 10


def test_draws_never_contradict_a_proof() -> None:
    found = against_draws(120, 13, 1000)
    left = sum(v for k, v in found.items() if k.startswith("unresolved"))
    assert left <= 0.1 * sum(found.values())


@pytest.mark.heavy
def test_a_million_draws_never_contradict_a_proof() -> None:
    found = against_draws(1000, 14, 1000)
    print(sorted(found.items()))
    assert sum(v for k, v in found.items() if k.startswith("unresolved")) <= 0.1 * sum(found.values())


def test_the_same_answer_on_every_run() -> None:
    for triple in triples(40, 15, 50):
        first, second = (Prover(triple.structure, triple.im).prove(triple.start, triple.goal, triple.ask) for _ in range(2))
        assert (first.status, first.method, first.reason, first.boxes, first.nodes) == (second.status, second.method, second.reason, second.boxes, second.nodes)
        assert (first.point is None) == (second.point is None)
        assert first.point is None or np.array_equal(first.point, second.point, equal_nan=True)


def test_another_solver_gives_no_other_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    right = solver._importable
    monkeypatch.setattr(solver, "_importable", lambda module: module != "highspy" and right(module))
    for triple in triples(60, 16):
        proof = Prover(triple.structure, triple.im).prove(triple.start, triple.goal, triple.ask)
        check(triple, proof)
        assert proof.status != "possible" or len(triple.hits)


def test_every_row_falls_into_one_kept_leaf_per_tree() -> None:
    for triple in triples(60, 17):
        if not isinstance(triple.structure, Trees) or not len(triple.points):
            continue
        case = Prover(triple.structure, triple.im).case(triple.start)
        terms = case.terms
        for point in triple.points[:20]:
            cells = np.array([np.searchsorted(a.cuts, point[a.column]) for a in terms.numbers], dtype=np.intp)
            places = np.array([np.searchsorted(a.allowed, point[a.column]) for a in terms.levels], dtype=np.intp)
            inside = ((terms.lo <= cells) & (cells <= terms.hi)).all(axis=1)
            for offset, place in zip(terms.offsets, places):
                inside &= terms.mask[:, offset + place]
            assert np.array_equal(terms.tree[inside], np.arange(terms.count))
            assert terms.const + terms.value[inside].sum(axis=0) == pytest.approx(triple.structure.scores(point[None])[0])


def test_small_budgets_leave_open_and_never_contradict() -> None:
    rng = np.random.default_rng(3)
    im = InteractionModel([Feature(f"r{i}", "real", bounds=(0, 4)) for i in range(8)])
    structure = random_trees(im, rng, 1, 40, 4)
    start = np.append(rng.uniform(0, 4, 8), 0.0)
    found = set()
    for bound in np.linspace(20, 60, 6):
        ask = judge(structure, at_least(float(bound)))
        small = Prover(structure, im, boxes=2, nodes=1).prove(start, at_least(float(bound)), ask)
        large = Prover(structure, im).prove(start, at_least(float(bound)), ask)
        found.add(small.reason)
        assert small.status in ("unresolved", large.status)
        late = Prover(structure, im, seconds=1e-9, boxes=10_000).prove(start, at_least(float(bound)), ask)
        assert late.status in ("unresolved", large.status)
    assert "budget" in found


def line(slope: float = 1.0) -> Additive:
    return Additive((Column("a"), Column("b")), ANSWER, np.zeros(1), {"a": np.array([slope])})


def test_a_tie_is_decided_by_the_model() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 3)), Feature("b", "integer", bounds=(0, 3))])
    trees = Trees(
        (Column("a", whole=True), Column("b", whole=True)), ANSWER, np.zeros(1), np.array([0, 3]), np.array([0, -1, -1, 1, -1, -1]),
        np.array([1.0, 0, 0, 1.0, 0, 0]), np.zeros(6, dtype=bool), np.array([1, 0, 0, 4, 0, 0]), np.array([2, 0, 0, 5, 0, 0]),
        np.array([[0.0], [0.1], [0.2], [0.0], [0.2], [0.3]]),
    )  # fmt: skip
    goal = at_least(0.5)  # the best sum is 0.2 + 0.3
    assert Prover(trees, im).prove(np.zeros(2), goal, judge(trees, goal)).status == "possible"
    assert Prover(trees, im).prove(np.zeros(2), goal, lambda points: np.zeros(len(points), dtype=bool)).status == "impossible"
    tied = InteractionModel(im.features, [LinearConstraint({"a": 1, "b": 1}, "<=", 4)])
    refused = Prover(trees, tied).prove(np.zeros(2), goal, lambda points: np.zeros(len(points), dtype=bool))
    assert (refused.status, refused.method) == ("impossible", "program")


def test_a_cell_that_only_rounding_leads_to_is_left_open() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 1))])
    step = Additive((Column("a"),), ANSWER, np.zeros(1), steps={"a": (np.array([1.0]), np.array([[0.0], [1.0]]))})
    proof = Prover(step, im).prove(np.zeros(1), at_least(0.5), judge(step, at_least(0.5)))
    assert (proof.status, proof.reason) == ("unresolved", "rounding")  # 1 + 1e-10 is feasible by the definition and above the cut
    inside = Additive((Column("a"),), ANSWER, np.zeros(1), steps={"a": (np.array([np.nextafter(1.0, 0)]), np.array([[0.0], [1.0]]))})
    found = Prover(inside, im).prove(np.zeros(1), at_least(0.5), judge(inside, at_least(0.5)))
    assert found.status == "possible"
    assert found.point is not None
    assert found.point[0] == 1.0


@pytest.mark.parametrize(
    ("clip", "bound", "expected"),
    [((0, 2), 5.0, ("impossible", None)), ((0, 2), 1.5, ("unresolved", "effects")), (None, 5.0, ("unresolved", "effects"))],
)
def test_effects_free_a_feature_within_their_clip(clip, bound, expected) -> None:
    im = InteractionModel(
        [Feature("a", "real", bounds=(-100, 100) if clip else None, actionable=False), Feature("b", "integer", bounds=(0, 3))],
        effects=[Effect("a", add="normal(action.b, 1)", clip=clip)],
    )
    proof = Prover(line(), im).prove(np.zeros(2), at_least(bound), judge(line(), at_least(bound)))
    assert (proof.status, proof.reason) == expected
    unread = Additive((Column("a"), Column("b")), ANSWER, np.zeros(1), {"b": np.array([1.0])})
    assert Prover(unread, im).prove(np.zeros(2), at_least(3.0), judge(unread, at_least(3.0))).status == "possible"
    assert Prover(unread, im).prove(np.zeros(2), at_least(3.5), judge(unread, at_least(3.5))).status == "impossible"


def test_trees_end_where_an_effect_without_a_clip_goes_on() -> None:
    im = InteractionModel([Feature("a", "real", actionable=False), Feature("b", "binary")], effects=[Effect("a", add="normal(action.b, 1)")])
    step = Additive((Column("a"), Column("b")), ANSWER, np.zeros(1), steps={"a": (np.array([1.0]), np.array([[0.0], [1.0]]))})
    assert Prover(step, im).prove(np.zeros(2), at_least(2.0), judge(step, at_least(2.0))).status == "impossible"
    assert Prover(step, im).prove(np.zeros(2), at_least(0.5), judge(step, at_least(0.5))).reason == "effects"


def test_a_large_part_with_a_constraint_without_rows() -> None:
    wide = [Feature(n, "integer", bounds=(0, 500)) for n in "ab"]
    one = InteractionModel(wide, [Predicate(("a", "b"), lambda v: np.sin(np.asarray(v["a"], dtype=float) * v["b"]) >= 0)])
    two = Additive((Column("a", whole=True), Column("b", whole=True)), ANSWER, np.zeros(1), {"a": np.ones(1), "b": np.ones(1)})
    never = Prover(two, one).prove(np.zeros(2), at_least(1001.0), judge(two, at_least(1001.0)))
    assert never.status == "impossible"
    found = Prover(two, one).prove(np.zeros(2), at_least(500.0), judge(two, at_least(500.0)))
    assert found.status == "possible" or found.reason == "constraint"
    none = InteractionModel(wide, [Predicate(("a", "b"), lambda v: (np.asarray(v["a"]) == 0) & (np.asarray(v["b"]) == 0))])
    proof = Prover(two, none).prove(np.zeros(2), at_least(500.0), judge(two, at_least(500.0)))
    assert (proof.status, proof.reason) in (("unresolved", "constraint"), ("impossible", None))


def test_strict_relations_over_reals_are_closed_for_a_proof() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 10)), Feature("b", "real", bounds=(0, 10))], [Rule("a + b < 5")])
    assert Prover(line(), im).prove(np.zeros(2), at_least(5.1), judge(line(), at_least(5.1))).status == "impossible"
    assert Prover(line(), im).prove(np.zeros(2), at_least(4.9), judge(line(), at_least(4.9))).status == "possible"
    near = Prover(line(), im).prove(np.zeros(2), at_least(5.0 - 1e-8), judge(line(), at_least(5.0 - 1e-8)))
    assert (near.status, near.reason) == ("unresolved", "rounding")


def test_goals_without_conditions_and_features_that_are_no_columns() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 3))], [Rule("a >= 2")])
    always = Prover(line(), im).prove(np.zeros(2), ((),), lambda points: np.ones(len(points), dtype=bool))
    assert always.status == "possible"
    assert always.point is not None
    assert always.point[0] >= 2
    assert Prover(line(), im).prove(np.zeros(2), (), lambda points: np.ones(len(points), dtype=bool)).status == "impossible"
    with pytest.raises(InputError, match="not a column"):
        Prover(line(), InteractionModel([Feature("c", "binary")]))


def test_leaves_of_missing_values_and_of_cuts_beyond_all_numbers() -> None:
    trees = Trees(
        (Column("a"),), ANSWER, np.zeros(1), np.array([0]), np.array([0, -1, 0, -1, -1]), np.array([np.inf, 0, 3.0, 0, 0]),
        np.array([False, False, True, False, False]), np.array([1, 0, 3, 0, 0]), np.array([2, 0, 4, 0, 0]), np.array([[0.0], [1.0], [0.0], [2.0], [3.0]]),
    )  # fmt: skip
    leaves = Leaves(trees)
    assert sorted(leaves.value[:, 0].tolist()) == [1.0, 2.0]  # the third leaf takes numbers above all numbers
    assert trees.scores(np.array([[5.0], [np.nan]]))[:, 0].tolist() == [1.0, 2.0]
    assert leaves.within(np.array([np.nan]), {}).const.tolist() == [2.0]
    assert leaves.within(np.array([5.0]), {}).const.tolist() == [1.0]

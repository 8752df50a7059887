"""The interaction model: which features can move, under which constraints, with which downstream effects.

A frozen value. It is declared in Python or read from a spec file, checked as a whole when it is made, and edited by
making another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.effects import Effect, Latent, in_order
from budge.errors import DataError, InputError, Problem, SpecError, nearest
from budge.features import Feature
from budge.frames import Coding, one_row
from budge.origins import from_native
from budge.parts import Part, partition
from budge.soundness import model_problems

if TYPE_CHECKING:
    import pandas as pd

    from budge.describe import Description
    from budge.from_others import AlibiExplainer, DiceData, ReachmlActionSet
    from budge.reach import ReachableSample, ReachableSet, SampleBlock
    from budge.report.figures import Figure

__all__ = ["InteractionModel"]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Relaxable = Literal["all", "actionable", "direction", "steps", "bounds", "integrality"]


@dataclass(frozen=True, eq=False)
class InteractionModel:
    """Features, joint constraints and stochastic effects (Def. Interaction Model).

    Parameters
    ----------
    features
        `Feature` values, or a mapping from name to what a spec file would say.
    constraints
        Values of the classes in `budge.constraints`.
    effects, latent
        Stochastic downstream effects and the draws that they share.
    name
        What results call it.
    measure
        ``configuration`` (default): discrete configurations equally likely, then the continuous coordinates uniformly
        over what is left open. ``volume``: uniform over the whole feasible set by volume (plain rejection).
    draft
        Whether it was suggested from data and nobody has confirmed it; a warning states so wherever it is used.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel(
    ...     [
    ...         budge.Feature("age", "integer", bounds=(18, 100), actionable=False),
    ...         budge.Feature("years", "integer", bounds=(0, 60), direction="increase", max_increase=2),
    ...     ],
    ...     [budge.constraints.DirectionalLinkage("years", {"age": 1})],
    ... )
    >>> im.partition
    (('age', 'years'),)
    >>> im.enumerate({"age": 30, "years": 4}).points.values.tolist()
    [[30, 4], [31, 5], [32, 6]]
    """

    features: tuple[Feature, ...]
    constraints: tuple[Constraint, ...] = ()
    effects: tuple[Effect, ...] = ()
    latent: tuple[Latent, ...] = ()
    name: str = ""
    measure: Literal["configuration", "volume"] = "configuration"
    draft: bool = False

    def __init__(
        self,
        features: Iterable[Feature] | Mapping[str, Any],
        constraints: Iterable[Constraint] = (),
        effects: Iterable[Effect] = (),
        latent: Iterable[Latent] | Mapping[str, Any] = (),
        *,
        name: str = "",
        measure: Literal["configuration", "volume"] = "configuration",
        draft: bool = False,
    ) -> None:
        if isinstance(features, Mapping):
            from budge.spec import features_from

            features = features_from(features)
        if isinstance(latent, Mapping):
            latent = [
                d if isinstance(d, Latent) else Latent(n, **d) if isinstance(d, Mapping) else Latent(n, d)
                for n, d in latent.items()
            ]
        declared, given = tuple(features), tuple(constraints)
        for i, c in enumerate(given):
            if not isinstance(c, Constraint):
                raise SpecError(
                    "is not a constraint", where=f"constraints[{i}]", got=c, remedy="use the classes in budge.constraints"
                )
        found = model_problems(declared, given, tuple(effects), tuple(latent), measure)
        SpecError.raise_if(found)
        by_name = {f.name: f for f in declared}
        set_field = object.__setattr__
        set_field(self, "features", declared)
        set_field(self, "constraints", tuple(c.bind(by_name) for c in given))
        set_field(self, "effects", in_order(tuple(effects)))
        set_field(self, "latent", tuple(latent))
        set_field(self, "name", name)
        set_field(self, "measure", measure)
        set_field(self, "draft", draft)
        remedy = "go through its features, then take out `draft: true`, or in Python call im.confirmed()"
        warned = [Problem("draft", "the interaction model is a draft that nobody has confirmed", remedy=remedy, severity="warning")]
        set_field(self, "warnings", (*(warned if draft else ()), *(p for p in found if p.severity == "warning")))

    warnings: tuple[Problem, ...] = ()  #: what is odd but allowed: idle conditions, twins

    # -- reading and writing ------------------------------------------------------------------------------------

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> InteractionModel:
        """Build from the mapping that a spec file holds; all problems are raised at once."""
        from budge.spec import model_from

        return model_from(spec)

    @classmethod
    def from_file(cls, path: str | Path) -> InteractionModel:
        """Read a spec file: YAML, JSON or TOML by its ending."""
        from budge.spec import read_model

        return read_model(path)

    @classmethod
    def from_frame(cls, X: Any, **options: Any) -> InteractionModel:
        """Return a first model from data, a draft: types, bounds and traits as suggested, no joint constraint but encodings and dependencies."""
        from budge.spec import suggest

        return suggest(X, **options).model()

    # -- moving over ----------------------------------------------------------------------------------------------

    @classmethod
    def from_reachml(cls, action_set: ReachmlActionSet, *, name: str = "") -> InteractionModel:
        """Return the model of a `reachml.ActionSet`, with the meaning that its constraints have there.

        A `MutabilitySwitch` forces a change unless ``force_change_when_off=False``, and an `IfThenConstraint` is about actions; budge's
        own defaults are ``otherwise="free"`` and the value reached. What has no mapping is an error, all problems at once.
        """
        from budge.from_others import from_reachml

        return from_reachml(action_set, name=name)

    @classmethod
    def from_dice(
        cls, data: DiceData, features_to_vary: Literal["all"] | Sequence[str] = "all", permitted_range: Mapping[str, Sequence[Any]] | None = None,
        *, name: str = "",
    ) -> InteractionModel:  # fmt: skip
        """Return the model of what DiCE may change: `data` is what ``dice_ml.Data(...)`` returns, the rest as in ``generate_counterfactuals``.

        Numbers move within the permitted range, categories to the permitted levels; categories are texts, as DiCE makes them. No feature
        depends on another, since DiCE declares no joint constraints: add those with `with_constraint`.
        """
        from budge.from_others import from_dice

        return from_dice(data, features_to_vary, permitted_range, name=name)

    @classmethod
    def from_alibi(cls, explainer: AlibiExplainer | Mapping[str, Any], X: pd.DataFrame | npt.ArrayLike, *, name: str = "") -> InteractionModel:
        """Return the model of an alibi `CounterfactualRLTabular`, or of a mapping with what it is built of.

        Read are ``feature_names``, ``category_map``, ``immutable_features`` and ``ranges``; `X` holds the training data, since ranges are shares
        of what it spans. Categories are their codes, as in alibi's tables. Explainers that state nothing of what people can change are refused.
        """
        from budge.from_others import from_alibi

        return from_alibi(explainer, X, name=name)

    def to_spec(self) -> dict[str, Any]:
        """The mapping that a spec file holds; `from_spec` gives the same model back."""
        spec: dict[str, Any] = {"budge": 1}
        if self.name:
            spec["name"] = self.name
        if self.measure != "configuration":
            spec["measure"] = self.measure
        if self.draft:
            spec["draft"] = True
        spec["features"] = {f.name: f.to_spec() for f in self.features}
        if self.constraints:
            spec["constraints"] = [c.to_spec() for c in self.constraints]
        if self.latent:
            spec["latent"] = {shared.name: shared.to_spec() for shared in self.latent}
        if self.effects:
            spec["effects"] = [e.to_spec() for e in self.effects]
        return spec

    def to_file(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a spec file: YAML, JSON or TOML by its ending."""
        from budge.spec import write_model

        return write_model(self, path, overwrite=overwrite)

    @cached_property
    def digest(self) -> str:
        """A digest of the content: equal models, equal digests, on any machine."""
        record: dict[str, Any] = {"measure": self.measure, "features": {f.name: _texts(f.to_spec()) for f in self.features}}
        record["constraints"] = sorted(json.dumps(_record(c), sort_keys=True, default=str) for c in self.constraints)
        record["effects"] = [_record(e) for e in self.effects]
        record["latent"] = {shared.name: _record(shared) for shared in self.latent}
        return blake2b(json.dumps(record, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InteractionModel) and self.digest == other.digest and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.digest)

    # -- what it means --------------------------------------------------------------------------------------------

    @cached_property
    def by_name(self) -> dict[str, Feature]:
        """The features by name."""
        return {f.name: f for f in self.features}

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts: features that share a constraint or an effect, directly or through others."""
        return partition(self.features, self.constraints, self.effects, self.latent)

    @property
    def partition(self) -> tuple[tuple[str, ...], ...]:
        """The names, part by part."""
        return tuple(part.names for part in self.parts)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The features whose value can change: actionable, linked to, or acted on by an effect."""
        names = {f.name for f in self.features if f.actionable} | {e.feature for e in self.effects}
        return frozenset(names | {t for part in self.parts for t in part.links})

    @cached_property
    def coding(self) -> Coding:
        """How tables are read into numbers and written back."""
        return Coding(self.features, self.moving)

    def feasible(self, x: Any, changes: Any) -> BoolArray:
        """Whether each candidate change is feasible from x: the definition that everything else must agree with.

        Parameters
        ----------
        x
            One person: a mapping, a Series, a row of a DataFrame.
        changes
            A table with one candidate a row; features that it does not name stay. A category's column holds either
            the level reached or the difference of level positions. An array has one column a feature, in order.
        """
        start = self.start(x)
        moved = self._changes(changes, start)
        good = np.ones(len(next(iter(moved.values()))), dtype=bool)
        for part in self.parts:
            good &= np.broadcast_to(
                part.feasible({n: start[n] for n in part.names}, {n: moved[n] for n in part.names}), good.shape
            )
        return good

    def start(self, x: Any) -> dict[str, float]:
        """One person as numbers by feature."""
        frame = one_row(x, [f.name for f in self.features])
        return dict(zip((f.name for f in self.features), self.coding.encode(frame)[0].tolist()))

    def broken(self, x: Any) -> tuple[Problem, ...]:
        """Return what the person breaks before any move: bounds and value constraints (status ``invalid_start``)."""
        from budge.reach.status import broken_at

        return broken_at(self, self.start(x))

    def _changes(self, changes: Any, start: Mapping[str, float]) -> dict[str, FloatArray]:
        import pandas as pd

        names = [f.name for f in self.features]
        try:
            if isinstance(changes, Mapping) and not hasattr(changes, "columns"):
                given = {k: np.atleast_1d(np.asarray(v)) for k, v in changes.items()}
                changes = pd.DataFrame(given, index=None if given else [0])
            elif isinstance(changes, np.ndarray | list | tuple):
                array = np.atleast_2d(np.asarray(changes, dtype=float))
                if array.shape[1] != len(names):
                    raise DataError(f"changes need {len(names)} columns, one for each feature", got=f"shape {array.shape}")
                changes = pd.DataFrame(array, columns=names)
            elif not isinstance(changes, pd.DataFrame):
                changes = from_native(changes)
        except DataError:
            raise
        except (TypeError, ValueError) as error:
            raise DataError(f"cannot be read as a table of changes: {error}", where="changes", got=changes) from None
        strange = [str(c) for c in changes.columns if c not in self.by_name]
        if strange:
            raise DataError("a change of a feature that is not declared", got=strange[0], remedy=nearest(strange[0], names))
        moved = {}
        for name, feature in self.by_name.items():
            if name not in changes.columns:
                moved[name] = np.zeros(len(changes))
            elif feature.levels is not None and getattr(changes[name].dtype, "kind", "O") not in "biuf":
                codes = Coding((feature,)).encode(changes[[name]].reset_index(drop=True))[:, 0]
                moved[name] = codes - start[name]
            else:
                try:
                    moved[name] = changes[name].to_numpy(dtype=float)
                except (TypeError, ValueError):
                    raise DataError("a change is a number", where=f"changes.{name}", got=changes[name].iloc[0]) from None
        return moved

    def describe(self) -> Description:
        """The paper's table: name, type, bounds, actionable, direction, joint constraints, part."""
        from budge.describe import Description

        return Description(self)

    def __str__(self) -> str:
        return str(self.describe())

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        counts = ((self.features, "feature"), (self.constraints, "constraint"), (self.effects, "effect"))
        return f"InteractionModel({title}{', '.join(f'{len(own)} {noun}' if len(own) == 1 else f'{len(own)} {noun}s' for own, noun in counts)})"

    def plot(self) -> Figure:
        """A figure: the parts, and the constraints and effects that tie their features together."""
        from budge.report.figures import partition

        return partition(self)

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_() + self.plot().svg(standalone=False)

    # -- reaching -------------------------------------------------------------------------------------------------

    def enumerate(
        self, x: Any, *, limit: int = 1_000_000, on_invalid: Literal["error", "skip", "keep"] = "error"
    ) -> ReachableSet:
        """All reachable points of one person, each once; an error that tells the size where there are too many."""
        from budge.reach import enumerate_points

        return enumerate_points(self, x, limit=limit, on_invalid=on_invalid)

    def sample(
        self, x: Any, n: int, *, seed: int = 0, purpose: str = "draw", method: Literal["auto", "milp"] = "auto", proposal: Any = None,
        on_invalid: Literal["error", "skip", "keep"] = "error",
    ) -> ReachableSample:  # fmt: skip
        """n independent draws of a reachable point, with repeats; they depend on (seed, content of x, purpose) alone."""
        from budge.reach import sample_points

        return sample_points(self, x, n, seed=seed, purpose=purpose, method=method, proposal=proposal, on_invalid=on_invalid)

    def sample_many(
        self, X: Any, n: int, *, seed: int = 0, purpose: str = "draw", block_rows: int = 65_536,
        on_invalid: Literal["error", "skip", "keep"] = "error",
    ) -> Iterator[SampleBlock]:  # fmt: skip
        """The draws of many people as a stream of blocks with bounded memory."""
        from budge.reach import sample_blocks

        return sample_blocks(self, X, n, seed=seed, purpose=purpose, block_rows=block_rows, on_invalid=on_invalid)

    # -- edits: each returns a new model ----------------------------------------------------------------------------

    def find(self, constraint: str | int | Constraint) -> Constraint:
        """A constraint by name, label, position or value."""
        if (
            isinstance(constraint, int)
            and not isinstance(constraint, bool)
            and -len(self.constraints) <= constraint < len(self.constraints)
        ):
            return self.constraints[constraint]
        for c in self.constraints:
            if c is constraint or (isinstance(constraint, str) and constraint in (c.name, c.label)) or c == constraint:
                return c
        known = [c.label for c in self.constraints]
        raise InputError("no such constraint", got=constraint, remedy=nearest(constraint, known))

    def without(self, constraint: str | int | Constraint) -> InteractionModel:
        """The model without one constraint."""
        gone = self.find(constraint)
        return self._but(constraints=tuple(c for c in self.constraints if c is not gone))

    def with_constraint(self, *constraints: Constraint) -> InteractionModel:
        """The model with more constraints."""
        return self._but(constraints=(*self.constraints, *constraints))

    def without_distributions(self) -> InteractionModel:
        """The model of what can be done, however often: distributions are kept only where a feature has no finite bounds without them."""
        plain = tuple(f.but(distribution=None) if f.distribution is not None and np.isfinite(f.range).all() else f for f in self.features)
        return self if plain == self.features else self._but(features=plain)

    def without_effects(self) -> InteractionModel:
        """The model of what people do, without what happens afterwards."""
        return self._but(effects=(), latent=())

    def freeze(self, *features: str) -> InteractionModel:
        """The model in which these features cannot be moved directly."""
        return self._features(features, actionable=False)

    def relax(self, *features: str, what: Relaxable | None = None, bounds: tuple[float, float] | None = None) -> InteractionModel:
        """The model in which these features move more freely.

        ``actionable``: they can be moved. ``direction``: both ways. ``steps``: no step limits. ``integrality``: whole
        numbers become real ones. ``all``: actionable, both ways, no step limits. `bounds` replaces the bounds. Without `what`:
        the bounds alone where they are given, else ``all``.
        """
        changes: dict[str, dict[str, Any]] = {
            "actionable": {"actionable": True},
            "direction": {"direction": None},
            "steps": {"max_increase": None, "max_decrease": None},
            "integrality": {"type": "real"},
            "bounds": {},
            "all": {"actionable": True, "direction": None, "max_increase": None, "max_decrease": None},
        }
        if what is None:
            what = "all" if bounds is None else "bounds"
        if what not in changes:
            raise InputError("cannot be relaxed", got=what, remedy=nearest(what, changes))
        edit = changes[what]
        if what == "integrality":
            wrong = [n for n in features if n in self.by_name and self.by_name[n].type not in ("integer", "binary", "real")]
            if wrong:
                raise InputError("only whole numbers can become real ones", got=f"{wrong[0]}: {self.by_name[wrong[0]].type}")
            model = self
            for name in features:
                model = model._features((name,), type="real", bounds=bounds or self._feature(name).range)
            return model
        return self._features(features, **edit, **({"bounds": tuple(bounds)} if bounds is not None else {}))

    def _feature(self, name: str) -> Feature:
        if name not in self.by_name:
            raise InputError("no such feature", got=name, remedy=nearest(name, self.by_name))
        return self.by_name[name]

    def _features(self, names: Sequence[str], **changes: Any) -> InteractionModel:
        for name in names:
            self._feature(name)
        return self._but(features=tuple(f.but(**changes) if f.name in names else f for f in self.features))

    def _but(self, **changes: Any) -> InteractionModel:
        fields: dict[str, Any] = {
            "features": self.features, "constraints": self.constraints, "effects": self.effects, "latent": self.latent,
            "name": self.name, "measure": self.measure, "draft": self.draft,
        }  # fmt: skip
        return InteractionModel(**{**fields, **changes})

    def confirmed(self) -> InteractionModel:
        """Return the model without the mark of a draft."""
        return self._but(draft=False)

    def with_measure(self, measure: Literal["configuration", "volume"]) -> InteractionModel:
        """The same action set, drawn under another measure."""
        return self._but(measure=measure)


def _texts(value: Any) -> Any:
    """The value with texts for keys: weights on the levels 1 and "a" cannot be sorted else."""
    if not isinstance(value, dict):
        return value
    return {k if isinstance(k, str) else f"{type(k).__name__} {k!r}": _texts(v) for k, v in value.items()}


def _record(value: Any) -> Any:
    """A constraint, effect or draw as JSON; Python code by what it does, as far as that can be read."""
    try:
        record = value.to_spec()
    except SpecError:
        function: Any = getattr(value, "function", None) or getattr(value, "draw", None)
        code = getattr(function, "__code__", None)
        body = repr(value) if code is None else _code_record(code)
        record = {type(value).__name__: body}
        record["of"] = list(getattr(value, "scope", ())) or str(getattr(value, "feature", None) or getattr(value, "name", None))
    if isinstance(record, dict):  # a name is a label, not content
        record = {
            k: ({i: j for i, j in v.items() if i != "name"} if isinstance(v, dict) else v)
            for k, v in record.items()
            if k != "name"
        }
    return record


def _code_record(code: Any) -> list[Any]:
    """What a function does, as far as its compiled code tells: no addresses, no file names."""
    constants = [_code_record(c) if hasattr(c, "co_code") else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names)]

"""Linear forms in named variables, whose coefficients may be arrays (one form per row)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .evaluate import Env, Evaluation, as_numbers
from .nodes import Var

__all__ = ["Coefficient", "Linear", "plain"]

Array = npt.NDArray[np.float64]
Coefficient = float | Array


def plain(value: npt.ArrayLike) -> Coefficient:
    """A float where there is one number, else an array of floats."""
    if isinstance(value, float):
        return float(value)
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


@dataclass(frozen=True, eq=False)
class Linear:
    """``const + Σ coefficient · variable``; variables whose coefficient is zero everywhere are left out.

    Examples
    --------
    >>> rent = Linear({("value", "rent"): 12.0}, 0.0)
    >>> (rent - 100).substitute({("value", "rent"): 10.0})
    Linear(terms={}, const=20.0)
    """

    terms: Mapping[Var, Coefficient]
    const: Coefficient = 0.0

    __array_ufunc__ = None  # so that array * Linear comes to __rmul__

    def __post_init__(self) -> None:
        kept = {
            var: plain(c) for var, c in self.terms.items() if (c != 0 if isinstance(c, float) else np.any(np.not_equal(c, 0)))
        }
        object.__setattr__(self, "terms", kept)
        object.__setattr__(self, "const", plain(self.const))

    @classmethod
    def of(cls, var: Var) -> Linear:
        """The variable itself."""
        return cls({var: 1.0}, 0.0)

    @classmethod
    def total(cls, forms: Iterable[Linear]) -> Linear:
        """Return the sum of some forms, added in their order, in time linear in their terms.

        Examples
        --------
        >>> rent = Linear.of(("value", "rent"))
        >>> Linear.total([rent, rent, Linear({}, 3.0)])
        Linear(terms={('value', 'rent'): 2.0}, const=3.0)
        """
        terms: dict[Var, Coefficient] = {}
        const: Coefficient | None = None
        with np.errstate(all="ignore"):
            for form in forms:
                const = form.const if const is None else plain(np.add(const, form.const))
                for var, coefficient in form.terms.items():
                    terms[var] = plain(np.add(terms[var], coefficient)) if var in terms else coefficient
        return cls(terms, 0.0 if const is None else const)

    @property
    def vars(self) -> frozenset[Var]:
        """The variables with a coefficient that is not zero everywhere."""
        return frozenset(self.terms)

    @property
    def is_finite(self) -> bool:
        """Whether neither NaN nor an infinity is among the numbers."""
        return all(bool(np.all(np.isfinite(c))) for c in (self.const, *self.terms.values()))

    def __add__(self, other: Linear | npt.ArrayLike) -> Linear:
        with np.errstate(all="ignore"):
            if not isinstance(other, Linear):
                return Linear(self.terms, plain(np.add(self.const, other)))
            terms = dict(self.terms)
            for var, coefficient in other.terms.items():
                terms[var] = plain(np.add(terms[var], coefficient)) if var in terms else coefficient
            return Linear(terms, plain(np.add(self.const, other.const)))

    __radd__ = __add__

    def __neg__(self) -> Linear:
        return self * -1.0

    def __sub__(self, other: Linear | npt.ArrayLike) -> Linear:
        return self + (-other if isinstance(other, Linear) else np.negative(np.asarray(other, dtype=float)))

    def __rsub__(self, other: npt.ArrayLike) -> Linear:
        return -self + other

    def __mul__(self, factor: npt.ArrayLike) -> Linear:
        with np.errstate(all="ignore"):
            return Linear(
                {var: plain(np.multiply(c, factor)) for var, c in self.terms.items()}, plain(np.multiply(self.const, factor))
            )

    __rmul__ = __mul__

    def __truediv__(self, factor: npt.ArrayLike) -> Linear:
        with np.errstate(all="ignore"):
            return Linear(
                {var: plain(np.divide(c, factor)) for var, c in self.terms.items()}, plain(np.divide(self.const, factor))
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Linear) or self.vars != other.vars:
            return NotImplemented if not isinstance(other, Linear) else False
        pairs = [(self.const, other.const), *((c, other.terms[var]) for var, c in self.terms.items())]
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def substitute(self, known: Env) -> Linear:
        """The form with known variables put in."""
        rest = Linear({var: c for var, c in self.terms.items() if var not in known}, self.const)
        for var, coefficient in self.terms.items():
            if var in known:
                with np.errstate(all="ignore"):
                    rest = rest + np.multiply(coefficient, as_numbers(var, known[var]))
        return rest

    def parts(self, env: Env) -> Iterator[Array]:
        """The constant and the value of each term."""
        values = Evaluation(env, needs=self.vars).env
        yield np.asarray(self.const)
        for var, coefficient in self.terms.items():
            yield np.asarray(np.multiply(coefficient, values[var]))

    def evaluate(self, env: Env) -> Array:
        """The values of the form."""
        with np.errstate(all="ignore"):
            return np.asarray(sum(self.parts(env)), dtype=np.float64)

"""Dimensions of a printed matrix formula: does it type-check?

Reads formulas as they are printed, plain or TeX-like: ``S_t = S_{t-1} + k_t v_t^T`` or ``W + β (v −
v̄) φ(k)ᵀ``. Juxtaposition is the matrix product, ``^T``, ``^\\top`` and ``ᵀ`` transpose, subscripts
are dropped, a scalar scales. Dimensions are names: two are equal only if their names are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Shape = tuple[str, str]
"""Rows and columns, each a dimension's name; a column vector is ``(name, "1")``."""

SCALAR: Shape = ("1", "1")
_TRANSPOSE = re.compile(r"\^\{?(?:T|\\top|⊤)\}?|ᵀ|⊤")
_SUBSCRIPT = re.compile(r"_(?:\{[^}]*\}|\w)|[₀-₉₊₋ₜ]+")
_OPERATORS = {"+": "+", "-": "-", "−": "-", "*": "*", "·": "*", "(": "(", ")": ")", "@": "*"}


class FormulaError(ValueError):
    """A formula cannot be read: a symbol without a declared shape, or a stray character."""


class DimensionError(ValueError):
    """A sum or product of unequal dimensions; the message names both."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def shape_of(formula: str, shapes: Mapping[str, Sequence[str]]) -> Shape:
    """Return the shape of a formula's right-hand side.

    Args:
        formula: the printed formula; what stands left of an ``=`` is ignored.
        shapes: the dimensions of each symbol: none for a scalar, one name for a column vector, two
            for a matrix (rows, columns). A symbol may be written like a call, as ``φ(k)``.

    Raises:
        FormulaError: the formula cannot be read.
        DimensionError: it does not type-check.
    """
    right = formula.rpartition("=")[2]
    if not all(shapes):
        raise FormulaError("a symbol without a name has a declared shape")
    declared = {name: _as_shape(dims) for name, dims in shapes.items()}
    return _Parser(_tokens(right, declared), declared).parse()


def _as_shape(dims: Sequence[str]) -> Shape:
    if isinstance(dims, str) or len(dims) > 2:
        raise FormulaError(f"a shape is a list of at most two dimensions, not {dims!r}")
    rows, columns = [*dims, "1", "1"][:2]
    return rows, columns


def _tokens(text: str, shapes: Mapping[str, Shape]) -> list[_Token]:
    names = sorted(shapes, key=len, reverse=True)
    tokens, rest = [], text.strip()
    while rest:
        token, length = _next(rest, names)
        if token is not None:
            tokens.append(token)
        rest = rest[length:].lstrip()
    return tokens


def _next(rest: str, names: Sequence[str]) -> tuple[_Token | None, int]:
    for pattern, kind in ((_TRANSPOSE, "transpose"), (_SUBSCRIPT, "")):
        if match := pattern.match(rest):
            return (_Token(kind, match[0]) if kind else None), match.end()
    for name in names:
        if rest.startswith(name):
            return _Token("symbol", name), len(name)
    if rest[0] in _OPERATORS:
        return _Token(_OPERATORS[rest[0]], rest[0]), 1
    raise FormulaError(f"cannot read {rest!r}: no symbol of that name has a declared shape")


class _Parser:
    """Recursive descent: sum of products of (transposed) symbols and brackets."""

    def __init__(self, tokens: Sequence[_Token], shapes: Mapping[str, Shape]) -> None:
        self._tokens = [*tokens, _Token("end", "")]
        self._shapes = shapes
        self._at = 0

    def parse(self) -> Shape:
        shape, _ = self._sum()
        if self._kind != "end":
            raise FormulaError(f"unexpected {self._tokens[self._at].text!r}")
        return shape

    @property
    def _kind(self) -> str:
        return self._tokens[self._at].kind

    def _sum(self) -> tuple[Shape, str]:
        if self._kind == "-":
            self._at += 1
        shape, text = self._product()
        while self._kind in ("+", "-"):
            sign = self._kind
            self._at += 1
            other, other_text = self._product()
            if shape != other:
                raise DimensionError(
                    f"{text} is {_named(shape)} but {other_text} is {_named(other)}"
                )
            text = f"{text} {sign} {other_text}"
        return shape, text

    def _product(self) -> tuple[Shape, str]:
        shape, text = self._factor()
        while self._kind in ("symbol", "(", "*"):
            if self._kind == "*":
                self._at += 1
            other, other_text = self._factor()
            shape = _multiply(shape, other, text, other_text)
            text = f"{text} {other_text}"
        return shape, text

    def _factor(self) -> tuple[Shape, str]:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "symbol":
            shape, text = self._shapes[token.text], token.text
        elif token.kind == "(":
            shape, inner = self._sum()
            if self._kind != ")":
                raise FormulaError("a bracket is not closed")
            self._at += 1
            text = f"({inner})"
        else:
            raise FormulaError(f"expected a symbol or a bracket, found {token.text or 'the end'!r}")
        while self._kind == "transpose":
            self._at += 1
            shape, text = (shape[1], shape[0]), f"{text}ᵀ"
        return shape, text


def _multiply(one: Shape, other: Shape, one_text: str, other_text: str) -> Shape:
    if one == SCALAR:
        return other
    if other == SCALAR:
        return one
    if one[1] != other[0]:
        raise DimensionError(
            f"{one_text} is {_named(one)} and cannot multiply {other_text} ({_named(other)})"
        )
    return one[0], other[1]


def _named(shape: Shape) -> str:
    return f"{shape[0]}×{shape[1]}"

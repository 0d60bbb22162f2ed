from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance.formula import DimensionError, FormulaError, shape_of

RECORD = {"S": ["d_key", "d_value"], "k": ["d_key"], "v": ["d_value"], "beta": []}
PRINTED = "S_t = S_{t-1} + beta_t (v_t - S_{t-1}^T k_t) k_t^T"


def test_the_printed_delta_rule_does_not_type_check() -> None:
    with pytest.raises(DimensionError, match=r"S is d_key×d_value but .* is d_value×d_key"):
        shape_of(PRINTED, RECORD)


def test_the_printed_delta_rule_type_checks_where_the_dimensions_are_one() -> None:
    square = {"S": ["d", "d"], "k": ["d"], "v": ["d"], "beta": []}
    assert shape_of(PRINTED, square) == ("d", "d")


def test_the_delta_rule_in_the_transposed_convention_type_checks() -> None:
    assert shape_of("S + β k (v − Sᵀ k)ᵀ", {**RECORD, "β": []}) == ("d_key", "d_value")


def test_equation_24_type_checks() -> None:
    shapes = {"W": ["d_value", "d_dot"], "φ(k)": ["d_dot"], "v": ["d_value"], "v̄": ["d_value"]}
    assert shape_of("W + β (v − v̄) φ(k)ᵀ", {**shapes, "β": []}) == ("d_value", "d_dot")


@pytest.mark.parametrize("transpose", ["^T", "^{T}", r"^\top", r"^{\top}", "ᵀ", "⊤"])
def test_every_way_to_write_a_transpose_is_read(transpose: str) -> None:
    assert shape_of(f"k{transpose} k", RECORD) == ("1", "1")
    assert shape_of(f"k v{transpose}", RECORD) == ("d_key", "d_value")


def test_a_product_of_unequal_inner_dimensions_is_refused() -> None:
    with pytest.raises(DimensionError, match="cannot multiply"):
        shape_of("S k", RECORD)


@pytest.mark.parametrize("formula", ["S + γ k", "(S + S", "S + ", "S ) S", "", "S ? k"])
def test_what_cannot_be_read_is_an_error_of_its_own(formula: str) -> None:
    with pytest.raises(FormulaError):
        shape_of(formula, RECORD)


SIZES = {"a": 2, "b": 3, "c": 5}
MATRICES = {f"M{x}{y}": [x, y] for x in SIZES for y in SIZES}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(MATRICES)), st.booleans()), min_size=1, max_size=5)
)
def test_a_product_has_the_shape_that_numpy_gives_it(factors: list[tuple[str, bool]]) -> None:
    text = " ".join(name + ("^T" if turned else "") for name, turned in factors)
    arrays = [np.zeros([SIZES[d] for d in MATRICES[name]]) for name, _ in factors]
    turned = [a.T if turn else a for a, (_, turn) in zip(arrays, factors, strict=True)]
    try:
        expected = np.linalg.multi_dot(turned).shape if len(turned) > 1 else turned[0].shape
    except ValueError:
        with pytest.raises(DimensionError):
            shape_of(text, MATRICES)
        return
    rows, columns = shape_of(text, MATRICES)
    assert (SIZES[rows], SIZES[columns]) == expected


@pytest.mark.parametrize("shapes", [{"": ["a"]}, {"S": "ab"}, {"S": ["a", "b", "c"]}])
def test_shapes_that_make_no_sense_are_refused(shapes: dict[str, list[str]]) -> None:
    with pytest.raises(FormulaError):
        shape_of("S + S", shapes)

"""The checks of shapes and types that every other test runs under."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from shape_checks import jaxtyped
from torch import Tensor

from glassformer.core.shapes import split_heads

beartype = pytest.importorskip("beartype")
check = jaxtyped(typechecker=beartype.beartype)
Violation = beartype.roar.BeartypeCallHintViolation


@check
def product(
    x: Float[Tensor, "A B"], y: Float[Tensor, "B C"], wrong: int = 0
) -> "Float[Tensor, 'A C']":
    return torch.zeros(x.shape[0] + wrong, y.shape[1])


@check
def later(count: int, other: "NotYet | None" = None) -> str:
    return str(count) if count >= 0 else count


@check
@dataclass
class NotYet:
    x: Float[Tensor, "A B"]
    y: Float[Tensor, "A B"]


def test_axes_of_one_name_have_one_length_within_a_call():
    assert product(torch.zeros(2, 3), torch.zeros(3, 4)).shape == (2, 4)
    assert product(torch.zeros(5, 6), torch.zeros(6, 7)).shape == (5, 7)
    with pytest.raises(Violation):
        product(torch.zeros(2, 3), torch.zeros(4, 4))
    with pytest.raises(Violation):
        product(torch.zeros(2, 3), torch.zeros(3, 4), wrong=1)


def test_a_call_within_a_call_has_axes_of_its_own():
    @check
    def outer(x: Float[Tensor, "A B"]) -> Float[Tensor, "A A"]:
        return product(x.T, x)[: x.shape[0], : x.shape[0]]

    assert outer(torch.zeros(2, 3)).shape == (2, 2)


def test_a_generator_is_checked_as_it_is_called_and_in_a_scope_of_its_own():
    @check
    def rows(x: Float[Tensor, "A B"], y: Float[Tensor, "A B"]) -> Iterator[Tensor]:
        yield from x + y

    @check
    def outer(x: Float[Tensor, "A B"]) -> list[Tensor]:
        return list(rows(x.T, x.T))

    assert len(outer(torch.zeros(2, 3))) == 3
    with pytest.raises(TypeCheckError):
        rows(torch.zeros(2, 3), torch.zeros(3, 3))


def test_types_are_checked_where_no_shape_is_told():
    assert later(1) == "1"
    with pytest.raises(Violation):
        later("1")
    with pytest.raises(Violation):
        later(-1)


def test_records_are_checked_as_they_are_made():
    assert len(NotYet(torch.zeros(2, 1), torch.zeros(2, 1)).x) == 2
    with pytest.raises(Violation):
        NotYet(torch.zeros(2, 1), torch.zeros(3, 1))


def test_what_is_turned_off_is_not_checked(without_shape_hook):
    assert product(torch.zeros(2, 3), torch.zeros(4, 4)).shape == (2, 4)


def test_the_package_is_checked(request):
    if not request.config.getoption("--jaxtyping-packages", None):
        pytest.skip("the checks are off")
    with pytest.raises(Violation):
        split_heads(torch.zeros(2, 3, 4, dtype=torch.int64), 2)

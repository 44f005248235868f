"""That shapes in signatures are checked at all: of arguments, of what is returned, of the fields of a dataclass."""

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintParamViolation, BeartypeCallHintReturnViolation
from jaxtyping import Float
from numpy import ndarray

from tests.shapes import checked
from vizformer.analysis.one_forward import predictions
from vizformer.explain.step import Contraction


@checked
def product(left: Float[ndarray, "n m"], right: Float[ndarray, "m k"], flip: bool = False) -> Float[ndarray, "n k"]:
    return (left @ right).T if flip else left @ right


def test_one_letter_is_one_size_in_all_arguments_and_in_what_is_returned():
    left, right = np.ones((2, 3)), np.ones((3, 4))
    assert product(left, right).shape == (2, 4)
    with pytest.raises(BeartypeCallHintParamViolation, match="right"):
        product(left, left)
    with pytest.raises(BeartypeCallHintReturnViolation):
        product(left, right, flip=True)
    assert product(right, np.ones((4, 2))).shape == (3, 2)  # the next call has sizes of its own


def test_the_library_is_checked():
    with pytest.raises(BeartypeCallHintParamViolation):
        predictions.mean_guess(np.ones((2, 2)))
    with pytest.raises(BeartypeCallHintParamViolation):
        predictions.mean_guess([1.0])


def test_the_fields_of_a_dataclass_are_checked_together():
    assert Contraction(np.ones((2, 3)), np.ones((3, 4)), np.ones(4)).total().shape == (2, 4)
    with pytest.raises(BeartypeCallHintParamViolation, match="right"):
        Contraction(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(BeartypeCallHintParamViolation, match="add"):
        Contraction(np.ones((2, 3)), np.ones((3, 4)), np.ones(3))

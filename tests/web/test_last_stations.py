"""What the rows of a layer are called on the path: nothing is called a sum that is none."""

from types import SimpleNamespace

import pytest

from vizformer.web.pages.path.last_stations import _sublayer_names


@pytest.mark.parametrize(("residual", "sums"), [("sequential", 3), ("none", 0)])
def test_only_with_residual_connections_a_row_is_called_a_sum(residual, sums):
    found = SimpleNamespace(tokens=[SimpleNamespace(text="a")], followed=0, look=SimpleNamespace(layer=0))
    names = _sublayer_names(found, SimpleNamespace(residual=residual, norm_order="pre"))
    assert sum(name.startswith(("+", "=")) for name in names) == sums

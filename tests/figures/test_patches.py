"""The picture that is cut into patches."""

import numpy as np
import pytest

from vizformer import figures


def test_the_picture_is_grey_and_each_pixel_names_its_patch() -> None:
    picture = np.arange(24, dtype=float).reshape(4, 6) / 23
    figure = figures.patch_picture(picture, 2, 4)
    (drawn,) = figure.data
    np.testing.assert_allclose(drawn.z, picture, atol=1e-6)
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    assert drawn.colorscale == ((0, "#000000"), (1, "#ffffff"))
    assert drawn.customdata.tolist()[0] == [0, 0, 1, 1, 2, 2]
    assert drawn.customdata.tolist()[3] == [3, 3, 4, 4, 5, 5]
    with pytest.raises(ValueError, match="no patch 6"):
        figures.patch_picture(picture, 2, 6)

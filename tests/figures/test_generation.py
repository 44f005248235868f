"""The curves of what generation costs."""

import numpy as np
import pytest

from vizformer import figures


def test_the_cache_grows_on_what_is_fixed() -> None:
    nbytes = np.array([3000, 3500, 4000])
    figure = figures.cache_growth(nbytes, 2048, at=1)
    source, text = figure.data
    assert source.customdata.tolist() == [2048] * 4
    assert text.customdata.tolist() == [952, 1452, 1952, 1952]
    assert (source.y + text.y)[:3].tolist() == pytest.approx((nbytes / 1024).tolist())  # in KiB
    assert text.x.tolist() == [0, 1, 2, 3]  # the last step is as wide as the others,
    assert text.hovertemplate[3] == "<extra></extra>"  # and its end is no step of its own
    assert figure.layout.yaxis.ticksuffix == " KiB"
    assert figure.layout.shapes[0].x0 == 1
    assert len(figures.cache_growth(nbytes).data) == 1
    assert figures.cache_growth(np.array([100, 120])).layout.yaxis.ticksuffix == " B"
    with pytest.raises(ValueError, match="do not fit 5000 fixed ones"):
        figures.cache_growth(nbytes, 5000)


def test_multiplications_share_one_scale() -> None:
    cached = np.array([[1, 20, 30, 5], [2, 4, 6, 5]])
    uncached = np.array([[1, 20, 30, 5], [3, 24, 36, 5]])
    figure = figures.multiplications(cached, uncached, at=1)
    assert len(figure.data) == 8
    assert [bar.y.tolist() for bar in figure.data] == [*cached.T.tolist(), *uncached.T.tolist()]
    assert {bar.xaxis for bar in figure.data[:4]} == {"x"}
    assert {bar.xaxis for bar in figure.data[4:]} == {"x2"}
    assert {bar.yaxis for bar in figure.data} == {None}  # both on the same one
    assert figure.layout.yaxis.range[1] > 68
    assert len({bar.marker.pattern.shape for bar in figure.data[:4]}) == 4  # told apart without colour
    assert len(figure.layout.shapes) == 2
    with pytest.raises(ValueError, match="steps, 4"):
        figures.multiplications(cached, uncached[:, :3])

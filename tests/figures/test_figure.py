"""Figures as plain dicts: the same as Plotly's own objects, without their checks."""

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.figures.schema import as_json, plotly_has
from vizformer.figures.figure import Figure, bar, heatmap, scatter

ARRAYS = [
    np.arange(-3, 3, dtype=np.int64),
    np.array([2**40, 1]),
    np.array([2**63], dtype=np.uint64),
    np.array([1.5, np.nan], dtype=np.float32),
    np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8),
    np.array([[1.0], [np.inf]]).T,
    np.array(["a", "b"]),
    np.array([True, False]),
    np.array([], dtype=np.float32),
    np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    np.arange(10, dtype=np.int16)[::2],
]


@pytest.mark.parametrize("array", ARRAYS, ids=[f"{array.dtype} {array.shape}" for array in ARRAYS])
def test_an_array_is_sent_as_plotly_would_send_it(array):
    own = Figure(scatter(customdata=array)).to_dict()["data"][0]["customdata"]
    theirs = go.Figure(go.Scatter(customdata=array)).to_dict()["data"][0]["customdata"]
    assert as_json(own) == as_json(theirs)


def test_what_is_set_is_what_plotly_would_have():
    own, theirs = Figure(bar(x=[1, 2], y=["a", "b"])), go.Figure(go.Bar(x=[1, 2], y=["a", "b"]))
    for figure in (own, theirs):
        figure.update_layout(xaxis2={"anchor": "y", "domain": [0.5, 1.0]}, title={"text": "T"}, height=300)
        figure.update_traces(marker={"color": "red"}, text=["p", "q"])
        figure.update_traces(text=None)
        figure.update_xaxes(title="x", automargin=True, tickfont={"size": 12})
        figure.update_xaxes(tickfont={"color": "red"})
        figure.update_yaxes(title={"text": "y", "standoff": 3}, range=[0, 1])
        figure.add_shape(type="line", x0=0, x1=1, y0=0, y1=1, line={"width": 2})
        figure.add_annotation(x=0, y=0, text="here", showarrow=False)
        figure.add_vline(x=1.5, line={"dash": "dash"})
    assert as_json(own.to_dict()) == plotly_has(own.plotly) == plotly_has(theirs)


def test_what_plotly_does_not_know_is_refused_by_its_own_object():
    with pytest.raises(ValueError, match="colour"):
        _ = Figure(bar(x=[1], marker={"colour": "red"})).plotly
    with pytest.raises(AttributeError, match=r"figure\.plotly"):
        Figure(bar(x=[1])).add_hline(y=2)


def test_everything_else_that_a_figure_can_do_is_plotlys():
    figure = Figure(heatmap(z=np.eye(2, dtype=np.float32)))
    assert isinstance(figure.plotly, go.Figure)
    assert "plotly" in figure.to_html()
    assert figure.data[0].z.shape == (2, 2)
    figure.update_layout(height=123)
    assert figure.layout.height == 123  # Plotly's object is made anew
    assert as_json(pickle.loads(pickle.dumps(figure)).to_dict()) == as_json(copy.deepcopy(figure).to_dict())
    assert json.loads(json.dumps(figure.to_dict())) == figure.to_dict()


def test_a_plain_figure_loads_no_plotly():
    code = (
        "import sys, numpy, vizformer.figures as f; f.matrix_heatmap(numpy.eye(2), ['a', 'b'], ['c', 'd']).to_dict(); "
        "sys.exit('plotly' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_figure_is_found_again_at_the_second_use():
    from vizformer import figures

    for name in figures.__all__:
        if name != "ENGLISH":
            assert callable(getattr(figures, name))
            assert callable(getattr(figures, name)), name

"""Figures as SVG: read again, the cells are the numbers; what cannot be drawn is refused."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vizformer import figures
from vizformer.figures.figure import Figure, bar, heatmap, scatter
from vizformer.figures.style import MASKED, weight_scale
from vizformer.figures.svg import svg
from vizformer.figures.svg.axes import rgba, shades

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = ["我", "<s>", "😀", "a & b", "\x00", "مرحبا"]
PATTERN = np.random.default_rng(0).dirichlet(np.ones(6), size=6).astype(np.float32)


def root(figure: Figure, **settings: Any) -> ET.Element:
    return ET.fromstring(svg(figure, **settings))


def cells(found: ET.Element) -> list[ET.Element]:
    group = next(one for one in found.iter(f"{SVG}g") if one.get("class") == "cells")
    return list(group)


def said(found: ET.Element) -> list[str]:
    return [one.text or "" for one in found.iter(f"{SVG}text")]


def weight_of(colour: str) -> float:
    """The weight that a colour stands for."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    fine = np.linspace(0, 1, 20_001)
    return float(fine[np.abs(shades(fine, weight_scale())[:, :3] - wanted).sum(axis=1).argmin()])


def test_the_cells_are_the_pattern():
    found = cells(root(figures.attention_heatmap(PATTERN, TOKENS, TOKENS)))
    read = np.array([weight_of(one.get("fill", "")) for one in found]).reshape(6, 6)
    np.testing.assert_allclose(read, PATTERN, atol=0.006)  # a colour has 256 steps of red, green and blue
    left = np.array([float(one.get("x", "")) for one in found]).reshape(6, 6)
    top = np.array([float(one.get("y", "")) for one in found]).reshape(6, 6)
    assert (np.diff(left, axis=1) > 0).all()
    assert (np.diff(top, axis=0) > 0).all()
    assert np.ptp(left, axis=0).max() == np.ptp(top, axis=1).max() == 0


def test_tokens_of_any_script_stand_there_as_texts_and_fonts_are_named():
    found = root(figures.attention_heatmap(PATTERN, TOKENS, TOKENS), caption="头 3 · 😀 <b>")
    for token in ("我", "<s>", "😀", "a & b", "\ufffd", "مرحبا"):  # XML has no place for a NUL
        assert said(found).count(token) == 2
    assert "头 3 · 😀 <b>" in said(found)
    assert found.find(f"{SVG}desc").text == "头 3 · 😀 <b>"
    for font in ("Noto Sans CJK SC", "Microsoft YaHei", "Noto Color Emoji", "sans-serif"):
        assert font in found.get("font-family", "")


def test_masked_cells_have_no_weight_and_the_colour_bar_has_all_colours():
    reasons = np.triu(np.full((6, 6), 2), 1)
    found = root(figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=reasons))
    assert len(cells(found)) == 21
    grey = [one for one in found.iter(f"{SVG}rect") if one.get("fill-opacity") == "0.3"]
    assert len(grey) == 15
    assert MASKED.endswith("0.30)")
    stops = [one.get("stop-color") for one in found.iter(f"{SVG}stop")]
    assert stops == [colour for _, colour in weight_scale()]


def test_a_large_map_is_one_picture_of_a_pixel_for_each_cell():
    pattern = np.zeros((200, 150), np.float32)
    pattern[3, 140] = 1
    names = [[str(i) for i in range(size)] for size in (200, 150)]
    found = root(figures.attention_heatmap(pattern, *names))
    (image,) = found.iter(f"{SVG}image")
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("href", "").partition(",")[2]))))
    assert pixels.shape == (200, 150, 4)
    assert [tuple(at) for at in np.argwhere(pixels[..., 0] > 200)] == [(3, 140)]


@pytest.mark.parametrize("turned", [False, True])
def test_a_picture_covers_the_cells_that_it_stands_for(turned):
    values = np.random.default_rng(1).random((12, 20)).astype(np.float32)
    figure = Figure(heatmap(z=values, zmin=0, zmax=1, colorscale=weight_scale(), xgap=1, ygap=3))
    if turned:
        figure.update_xaxes(autorange="reversed")
        figure.update_yaxes(autorange="reversed")
    boxes = np.array([[float(one.get(at, "")) for at in ("x", "y", "width", "height")] for one in cells(root(figure))])
    x, y, wide, tall = boxes.reshape(12, 20, 4).transpose(2, 0, 1)
    across, up = x[0, 1] - x[0, 0], y[1, 0] - y[0, 0]
    assert wide + 1 == pytest.approx(np.full((12, 20), abs(across)), abs=0.02)
    assert tall + 3 == pytest.approx(np.full((12, 20), abs(up)), abs=0.02)
    assert (across < 0) == turned == (up > 0)
    (image,) = root(figure, most_cells=0).iter(f"{SVG}image")
    left, top = float(image.get("x", "")), float(image.get("y", ""))
    assert left == pytest.approx(x.min() - 0.5, abs=0.02)
    assert top == pytest.approx(y.min() - 1.5, abs=0.02)
    assert left + float(image.get("width", "")) == pytest.approx((x + wide).max() + 0.5, abs=0.02)
    assert top + float(image.get("height", "")) == pytest.approx((y + tall).max() + 1.5, abs=0.02)
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("href", "").partition(",")[2]))))
    seen = values[:, ::-1] if turned else values
    seen = seen if turned else seen[::-1]
    colours = shades(seen, weight_scale())[..., :3]
    np.testing.assert_allclose(pixels[..., :3], colours, atol=1)


def test_a_map_may_be_given_by_the_edges_of_its_cells():
    strip = heatmap(z=[[1.0, 2.0, 3.0]], y=[-0.25, 0.25], colorscale=weight_scale())
    figure = Figure(strip, heatmap(z=[[1.0, 2.0, 3.0]], y=[1.0, 1.5], colorscale=weight_scale()))
    figure.update_yaxes(range=[-1, 2])
    boxes = [
        [(float(one.get("y", "")), float(one.get("height", ""))) for one in group]
        for group in root(figure).iter(f"{SVG}g")
        if group.get("class") == "cells"
    ]
    (lower, tall), (upper, other) = (box for box, *_ in boxes)
    assert [len(row) for row in boxes] == [3, 3]
    assert tall == other == pytest.approx((lower - upper) * 0.5 / 1.25, abs=0.02)


def numbers(figure: Figure, anchor: str) -> list[str]:
    return [one.text or "" for one in root(figure).iter(f"{SVG}text") if one.get("text-anchor") == anchor]


def test_axes_have_their_numbers_from_end_to_end():
    figure = Figure(scatter(x=[5, 95], y=[0.3, 0.4], mode="markers"))
    figure.update_xaxes(range=[0, 100])
    figure.update_yaxes(range=[0, 1])
    assert numbers(figure, "middle") == ["0", "20", "40", "60", "80", "100"]  # below the axis
    assert numbers(figure, "end") == ["0", "0.2", "0.4", "0.6", "0.8", "1"]  # beside the axis
    figure.update_xaxes(visible=False)
    assert not numbers(figure, "middle")
    figure.update_xaxes(visible=True)
    assert len(numbers(figure, "middle")) == 6


def test_without_a_range_an_axis_reaches_over_all_numbers():
    points = [3.0, 4.0, 9.0, 12.0]
    found = root(Figure(scatter(x=points, y=points, mode="markers", marker={"color": "#0072b2"})))
    dots = list(found.iter(f"{SVG}circle"))[1:]  # the first is the legend's
    x, y = ([float(one.get(at, "")) for one in dots] for at in ("cx", "cy"))
    for drawn, most in ((np.array(x), float(found.get("width", ""))), (np.array(y), float(found.get("height", "")))):
        assert ((drawn > 0) & (drawn < most)).all()
        np.testing.assert_allclose(np.diff(drawn) / (drawn[-1] - drawn[0]), np.diff(points) / 9, atol=1e-3)
        assert abs(drawn[-1] - drawn[0]) > most / 2


def test_on_a_logarithmic_axis_notes_give_exponents_and_shapes_values():
    figure = Figure(scatter(x=[1, 1000], y=[0, 1], mode="lines"))
    figure.update_xaxes(type="log", range=[0, 3])
    figure.add_vline(10.0)
    figure.add_text(1.0, 0.5, "here")
    found = root(figure)
    (text,) = (one for one in found.iter(f"{SVG}text") if one.text == "here")
    (line,) = (one for one in found.iter(f"{SVG}line") if one.get("stroke") == "#444444")
    assert text.get("x") == line.get("x1") == line.get("x2")


def test_a_dotted_line_has_dots_as_long_as_it_is_wide():
    figure = Figure(scatter(x=[0, 1], y=[0, 1], mode="markers"))
    figure.add_shape(type="line", x0=0, x1=1, y0=0.5, y1=0.5, line={"color": "#0072b2", "width": 3, "dash": "dot"})
    (drawn,) = (one for one in root(figure).iter(f"{SVG}line") if one.get("stroke") == "#0072b2")
    assert drawn.get("stroke-dasharray") == "3 6"


def test_a_colour_without_opacity_covers():
    assert rgba("rgb(1, 2, 3)") == rgba("#010203") == (1, 2, 3, 1)
    assert rgba("rgba(1, 2, 3, 0.25)") == (1, 2, 3, 0.25)


def test_bars_have_the_lengths_of_their_numbers():
    found = root(Figure(bar(x=[1, 2, 3], y=[2.0, 4.0, 1.0], marker={"color": "#0072b2"})))
    heights = [float(one.get("height", "")) for one in found.iter(f"{SVG}rect") if one.get("fill") == "#0072b2"]
    assert heights == pytest.approx([2 * heights[2], 4 * heights[2], heights[2]], rel=1e-3)


def test_a_line_breaks_where_there_is_no_number():
    found = root(Figure(scatter(x=[0, 1, 2, 3, 4], y=[0, 1, None, 3, 4], mode="lines")))
    parts = [one.get("points", "").split() for one in found.iter(f"{SVG}polyline")]
    assert [len(part) for part in parts] == [2, 2]


def test_lines_of_heads_are_as_many_as_the_weights_above_the_threshold():
    weights = np.stack([PATTERN, PATTERN.T])
    figure = figures.attention_lines(weights, TOKENS, TOKENS, heads=[1, 4], threshold=0.1)
    drawn = sum(1 for one in root(figure).iter(f"{SVG}polyline"))
    assert drawn == int((weights >= 0.1).sum())
    assert {"H1", "H4"} <= set(said(root(figure)))


def test_the_text_has_each_token_on_the_colour_of_its_weight():
    tokens = ["The", " cat", " sat", "\nand", " 猫"]
    weights = np.array([0.1, 0.5, np.nan, 0.2, 0.05])
    found = root(figures.coloured_text(weights, tokens, marked=1))
    assert {"The", "cat", "sat", "and", "猫"} <= set(said(found))
    boxes = [one.get("fill", "") for one in found.iter(f"{SVG}rect") if re.match("#", one.get("fill", ""))]
    read = [weight_of(fill) for fill in boxes if fill != "#e0e0e0"]
    np.testing.assert_allclose(read, [0.1, 0.5, 0.2, 0.05], atol=0.006)
    assert boxes.count("#e0e0e0") == 1


@pytest.mark.parametrize(
    "trace", [{"type": "pie"}, scatter(x=[1], y=[1], mode="markers", marker={"symbol": "star"})], ids=["pie", "star"]
)
def test_what_is_not_known_is_refused(trace):
    with pytest.raises(ValueError, match="knows"):
        svg(Figure(trace))


def test_an_empty_figure_is_drawn_too():
    assert root(Figure()).tag == f"{SVG}svg"
    assert root(Figure(heatmap(z=np.full((2, 2), np.nan), colorscale=weight_scale()))) is not None

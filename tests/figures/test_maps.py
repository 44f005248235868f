"""Maps of attention, of heads and of matrices: what stands in the figure is what was passed."""

import re

import numpy as np
import plotly.graph_objects as go
import pytest

from vizformer import figures
from vizformer.figures import files
from vizformer.model import Reason

TOKENS = ["<s>", "cat", "cat", "猫"]
PATTERN = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.2, 0.3, 0.4]])
FUTURE = np.triu(np.full((4, 4), 2, np.uint8), 1)


def test_the_map_is_the_pattern() -> None:
    figure = figures.attention_heatmap(PATTERN, TOKENS, TOKENS)
    (heatmap,) = figure.data
    assert isinstance(heatmap.z, np.ndarray)
    assert heatmap.z.dtype == np.float32
    assert np.array_equal(heatmap.z, PATTERN.astype(np.float32))
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)


def test_the_pattern_is_left_alone() -> None:
    mine = PATTERN.astype(np.float32)
    figures.attention_heatmap(mine, TOKENS, TOKENS, reasons=FUTURE)
    assert np.array_equal(mine, PATTERN.astype(np.float32))


def test_repeated_and_odd_tokens_keep_their_own_place() -> None:
    figure = figures.attention_heatmap(PATTERN, TOKENS, ["<b>x</b>", "a&b", "", "</s>"])
    assert list(figure.layout.yaxis.tickvals) == [0, 1, 2, 3]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;s&gt;", "cat", "cat", "猫"]
    assert list(figure.layout.xaxis.ticktext) == ["&lt;b&gt;x&lt;/b&gt;", "a&amp;b", "", "&lt;/s&gt;"]
    top, bottom = figure.layout.yaxis.range[::-1]
    assert top < bottom  # row 0 is on top


def test_masked_cells_are_a_layer_of_their_own_and_say_why() -> None:
    reasons = FUTURE.copy()
    reasons[3, 0] = 1
    figure = figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=reasons)
    weights, padding, future, strokes = figure.data
    assert np.array_equal(np.isnan(weights.z), reasons != 0)
    for layer, code, reason in ((padding, 1, "padding"), (future, 2, "the future")):
        assert np.array_equal(np.isfinite(layer.z), reasons == code)
        assert f"is masked: {reason}<extra>" in layer.hovertemplate
        assert {colour for _, colour in layer.colorscale}.isdisjoint(colour for _, colour in weights.colorscale)
    assert np.array_equal(np.stack([strokes.y, strokes.x], 1), np.argwhere(reasons))


@pytest.mark.parametrize("reason", [one for one in Reason if one != Reason.VISIBLE])
def test_every_reason_of_a_masked_cell_is_said_in_words(reason: Reason) -> None:
    figure = figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=np.where(FUTURE, int(reason), 0))
    assert re.search(r"is masked: [a-z ,]+<extra>", figure.data[1].hovertemplate)


def test_scores_are_centred_on_zero_and_masked_cells_do_not_stretch_the_scale() -> None:
    scores = np.array([[-3.0, 100.0], [1.0, 2.0]])
    figure = figures.attention_heatmap(scores, "ab", "cd", reasons=np.array([[0, 2], [0, 0]]), kind="scores")
    heatmap = figure.data[0]
    assert (heatmap.zmin, heatmap.zmax) == (-3, 3)
    colours = [colour for _, colour in heatmap.colorscale]
    assert len(colours) % 2 == 1
    assert colours[len(colours) // 2] == "#f4f4f4"
    assert "score" in heatmap.hovertemplate


def test_the_scale_of_weights_spreads_small_ones_and_grows_throughout() -> None:
    scale = figures.attention_heatmap(PATTERN, TOKENS, TOKENS).data[0].colorscale
    places = [place for place, _ in scale]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == 1
    assert sum(place < 0.25 for place in places) >= 5  # half of the colours for the lowest quarter
    light = [sum(int(colour[i : i + 2], 16) * w for i, w in ((1, 0.3), (3, 0.59), (5, 0.11))) for _, colour in scale]
    assert light == sorted(light)  # also in grey


def test_many_tokens_are_all_named_and_some_printed() -> None:
    n = 200
    tokens = [f"<t{i}>" for i in range(n)]
    figure = figures.attention_heatmap(np.full((n, n), 1 / n), tokens, tokens)
    assert len(figure.layout.xaxis.ticktext) == n  # what the hover reads
    assert figure.layout.xaxis.showticklabels is False
    printed = figure.layout.xaxis2
    assert 20 <= len(printed.tickvals) <= 60
    assert all(
        figure.layout.xaxis.ticktext[at] == text for at, text in zip(printed.tickvals, printed.ticktext, strict=True)
    )
    assert printed.matches == "x"
    assert figure.data[0].texttemplate is None


def test_long_names_are_cut_where_they_are_printed_only() -> None:
    long = "x" * 40
    figure = figures.attention_heatmap(np.ones((2, 1)), [long, "short"], ["a"])
    assert figure.layout.yaxis.ticktext == (long, "short")
    assert figure.layout.yaxis2.ticktext == ("x" * 15 + "…", "short")


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 9), (9, 1), (512, 512)])
def test_all_sizes(queries: int, keys: int) -> None:
    pattern = np.full((queries, keys), 1 / keys)
    figure = figures.attention_heatmap(pattern, ["q"] * queries, ["k"] * keys)
    assert figure.data[0].z.shape == (queries, keys)
    assert len(figure.to_json()) < 2_000_000 + queries * keys * 6  # base64, not lists of numbers


def test_the_words_are_the_readers() -> None:
    words = {"attends": "查询 {query}“{query_token}” → {value}", "weight": "权重", "key": "键", "query": "查询"}
    figure = figures.attention_heatmap(PATTERN, TOKENS, TOKENS, words=words, title="<b>标题")
    assert figure.data[0].hovertemplate == "查询 %{pointNumber[0]}“%{y}” → %{z:.4f}<extra></extra>"
    assert figure.data[0].colorbar.title.text == "权重"
    assert figure.layout.xaxis.title.text == "键"
    assert figure.layout.title.text == "&lt;b&gt;标题"


def test_backgrounds_are_transparent_and_letters_are_the_themes() -> None:
    for figure in (
        figures.attention_heatmap(PATTERN, TOKENS, TOKENS),
        figures.head_grid(PATTERN[None, None]),
        figures.matrix_heatmap(PATTERN),
        figures.next_token_bars(["a"], np.array([1.0])),
        figures.positional_heatmap(PATTERN),
    ):
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.font.color is None


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="3 query and 4 key tokens"):
        figures.attention_heatmap(PATTERN, TOKENS[:3], TOKENS)
    with pytest.raises(ValueError, match="reasons of shape"):
        figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=FUTURE[:2])
    with pytest.raises(ValueError, match="patterns must be"):
        figures.head_grid(PATTERN)
    with pytest.raises(ValueError, match="layer numbers"):
        figures.head_grid(PATTERN[None, None], layers=[1, 2])
    with pytest.raises(ValueError, match="a matrix must be"):
        figures.matrix_heatmap(PATTERN[0])
    with pytest.raises(ValueError, match="row and"):
        figures.matrix_heatmap(PATTERN, ["a"])


def grid() -> tuple[np.ndarray, go.Figure]:
    patterns = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 4)).astype(np.float32)
    return patterns, figures.head_grid(patterns, reasons=FUTURE, layers=[5, 7])


def test_the_grid_is_one_picture_with_every_head_in_its_place() -> None:
    patterns, figure = grid()
    mosaic, masked, _ = figure.data
    gap = 1
    assert mosaic.z.shape == (2 * 4 + gap, 3 * 4 + 2 * gap)
    for layer in range(2):
        for head in range(3):
            tile = mosaic.z[layer * 5 : layer * 5 + 4, head * 5 : head * 5 + 4]
            assert np.array_equal(tile[FUTURE == 0], patterns[layer, head][FUTURE == 0])
            assert np.isnan(tile[FUTURE != 0]).all()
            assert np.array_equal(
                np.isfinite(masked.z[layer * 5 : layer * 5 + 4, head * 5 : head * 5 + 4]), FUTURE != 0
            )
    assert np.isnan(mosaic.z[4]).all()
    assert np.isnan(mosaic.z[:, 4]).all()
    assert (mosaic.zmin, mosaic.zmax) == (0, 1)


def test_the_grid_names_layers_and_heads() -> None:
    _, figure = grid()
    assert figure.layout.yaxis2.ticktext == ("L5", "L7")
    assert figure.layout.yaxis2.tickvals == (1.5, 6.5)
    assert figure.layout.xaxis2.ticktext == ("H0", "H1", "H2")
    assert figure.layout.yaxis.ticktext[:4] == ("L5",) * 4  # what a hover anywhere in the tile says
    assert figure.layout.xaxis.ticktext[5:9] == ("H1",) * 4


def test_large_heads_are_pooled_by_their_largest_weight() -> None:
    patterns = np.zeros((1, 1, 300, 100), np.float32)
    patterns[0, 0, 299, 50] = 0.7
    z = figures.head_grid(patterns).data[0].z
    assert z.shape == (32, 32)
    assert z.max() == np.float32(0.7)
    assert np.count_nonzero(z) == 1


def test_a_grid_of_gpt2_size_stays_small() -> None:
    figure = figures.head_grid(np.full((12, 12, 64, 64), 1 / 64, np.float32))
    assert len(figure.data) == 2  # the picture, and the carrier of the printed names
    assert len(figure.to_json()) < 1_000_000


def test_a_matrix_keeps_its_numbers_and_its_sign() -> None:
    matrix = np.array([[-1.0, 0.25], [0.5, 2.0]])
    figure = figures.matrix_heatmap(matrix, ["q<0>", "q1"], row_title="query")
    heatmap = figure.data[0]
    assert np.array_equal(heatmap.z, matrix.astype(np.float32))
    assert (heatmap.zmin, heatmap.zmax) == (-2, 2)
    assert heatmap.texttemplate == "%{z:.2f}"
    assert figure.layout.yaxis.ticktext == ("q&lt;0&gt;", "q1")
    assert figure.layout.xaxis.ticktext == ("0", "1")
    assert figures.matrix_heatmap(np.zeros((2, 2))).data[0].zmax == 1


def test_the_difference_of_two_maps_has_both_weights_and_a_symmetric_scale() -> None:
    second = PATTERN[::-1].copy()
    figure = figures.difference_map(PATTERN, second, TOKENS, TOKENS, reasons=FUTURE)
    (heatmap,) = figure.data
    assert np.allclose(heatmap.z[FUTURE == 0], (second - PATTERN)[FUTURE == 0])
    assert np.isnan(heatmap.z[FUTURE != 0]).all()
    assert heatmap.zmax == -heatmap.zmin == np.nanmax(np.abs(heatmap.z))
    assert np.allclose(heatmap.customdata, np.stack([PATTERN, second], -1))
    for place in ("%{customdata[0]:.4f} in the first", "%{customdata[1]:.4f} in the second", "difference %{z:+.4f}"):
        assert place in heatmap.hovertemplate
    assert len(files.table(figure).splitlines()) == 1 + (FUTURE == 0).sum()
    assert files.as_file(figure, "svg").startswith(b"<svg")
    with pytest.raises(ValueError, match="do not fit"):
        figures.difference_map(PATTERN, second, TOKENS, TOKENS[:3])


def test_the_map_of_cosines_ends_at_1_also_where_all_are() -> None:
    figure = figures.stream_map(np.array([[1.0, 0.25], [1.0, np.nan]]), ["embeddings", "layer 0"], ["a", "b"])
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0.25, 1)
    assert files.as_file(figure, "svg").startswith(b"<svg")
    same = figures.stream_map(np.ones((1, 2)), ["embeddings"], ["a", "b"]).data[0]
    assert same.zmin < same.zmax == 1
    with pytest.raises(ValueError, match="do not fit"):
        figures.stream_map(np.ones((1, 2)), ["embeddings"], ["a"])

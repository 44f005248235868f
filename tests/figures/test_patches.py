"""Attention over an image: what is lit is the rectangle that the head looks at."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import vizformer as vf
from vizformer import word_tables
from vizformer.figures import files
from vizformer.figures.svg import svg
from vizformer.figures.tables import sentence, table
from vizformer.pieces import Piece, patches

SVG = "{http://www.w3.org/2000/svg}"


class LooksAtTheBrightest(nn.Module):
    """One head over patches of 8 × 8 pixels behind a class token: every query looks at the patch of the largest mean."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = nn.functional.avg_pool2d(x.mean(1, keepdim=True), 8).flatten(2).transpose(1, 2)  # [1, n, 1]
        rows = torch.cat([means[:, :1] * 0, means], 1)
        weights = torch.softmax(100 * torch.ones_like(rows) @ rows.transpose(1, 2), -1)
        return weights @ rows


class Planted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = LooksAtTheBrightest()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(x)
        return found


def planted(width: int, height: int, bright: tuple[int, int]) -> tuple[Any, Image.Image]:
    """A recorded run over an image that is grey but for 8 × 8 white pixels, and the image."""
    pixels = np.full((height, width, 3), 40, np.uint8)
    x, y = bright
    pixels[y : y + 8, x : x + 8] = 255
    given = torch.tensor(pixels).permute(2, 0, 1)[None] / 255
    return vf.record(Planted(), given), Image.fromarray(pixels)


def lit(drawn: str) -> tuple[list[float], int]:
    """The most yellow cell of an SVG in shares of its image (x, y, width, height), and how many cells there are."""
    root = ET.fromstring(drawn)
    image = next(root.iter(f"{SVG}image"))
    x, y, width, height = (float(image.get(name, "nan")) for name in ("x", "y", "width", "height"))
    (group,) = (one for one in root.iter(f"{SVG}g") if one.get("class") == "cells")
    cells = list(group)
    (found,) = (one for one in cells if one.get("fill") == "#fde725")
    px = [float(found.get(name, "nan")) for name in ("x", "y", "width", "height")]
    return [(px[0] - x) / width, (px[1] - y) / height, px[2] / width, px[3] / height], len(cells)


@pytest.mark.parametrize(
    ("size", "bright", "expected", "cells"),
    [
        ((32, 32), (16, 8), [16 / 32, 8 / 32, 8 / 32, 8 / 32], 16),
        ((64, 64), (16, 8), [16 / 64, 8 / 64, 8 / 64, 8 / 64], 64),
        ((40, 24), (32, 16), [32 / 40, 16 / 24, 8 / 40, 8 / 24], 15),
        ((43, 30), (32, 16), [32 / 43, 16 / 30, 8 / 43, 8 / 30], 15),  # 3 and 6 pixels are in no patch
    ],
)
def test_a_head_that_looks_at_one_patch_lights_its_rectangle(
    size: tuple[int, int], bright: tuple[int, int], expected: list[float], cells: int
) -> None:
    trace, image = planted(*size, bright)
    rows, columns = size[1] // 8, size[0] // 8
    pieces = patches(rows, columns, size, size=(8 * columns, 8 * rows), before=["[CLS]"])
    pattern = trace["head"].pattern(0)
    figure = vf.figures.patch_map(pattern, pieces, pieces, query=0, image=image)
    found, n = lit(svg(figure))
    assert found == pytest.approx(expected, abs=2e-3)
    assert n == cells  # the class token is none of them
    row, column = bright[1] // 8, bright[0] // 8
    assert sentence(figure).endswith(f"Largest: patch row {row}, column {column}: weight 1.0000.")
    assert table(figure).total == cells


def test_the_other_way_round_shows_which_queries_look_at_a_patch() -> None:
    trace, image = planted(40, 24, (32, 16))
    pieces = patches(3, 5, (40, 24), before=["[CLS]"])
    pattern = trace["head"].pattern(0).numpy().copy()
    pattern[1 + 7] = 1 / 16  # the query at row 1, column 2 looks everywhere alike
    figure = vf.figures.patch_map(pattern, pieces, pieces, key=-1, image=image)
    cells = figure.data[0].z
    assert cells.shape == (3, 5)
    assert np.argwhere(cells < 0.5).tolist() == [[1, 2]]
    assert "Which queries look at key patch row 2, column 4" in figure.title
    assert "Beside the image: [CLS] 1" in figure.title


def test_class_and_register_tokens_are_said_and_not_drawn() -> None:
    pieces = patches(2, 3, (24, 16), before=["[CLS]", "<b>", "[REG 1]"], after=["[SEP]"])
    pattern = np.full((10, 10), 0.05)
    pattern[0, :3] = 0.4, 0.125, 0.005
    figure = vf.figures.patch_map(pattern, pieces, pieces, query=0)
    assert figure.data[0].z.shape == (2, 3)
    assert figure.data[0].zmax == pytest.approx(0.05)
    assert "Beside the image: [CLS] 0.4, &lt;b&gt; 0.12<br>[REG 1] 0.005, [SEP] 0.05" in figure.title
    many = (*pieces, *map(Piece, "abc"))
    title = vf.figures.patch_map(np.full((13, 13), 1 / 13), many, many, query=0).title
    assert "Beside the image: 7 tokens, together 0.54" in title


def test_the_range_of_the_colours_and_the_mean_are_said() -> None:
    pieces = patches(2, 2, (16, 16))
    heads = np.stack([np.eye(4), np.full((4, 4), 0.25)])
    own = vf.figures.patch_map(heads, pieces, pieces, query=2, title="layer 3")
    assert own.title.split("<br>") == [
        "layer 3",
        "What query patch row 1, column 0 looks at",
        "Mean over 2 heads",
        "Colours from 0 to 0.62, the largest weight here",
    ]
    assert own.data[0].z.tolist() == [[0.125, 0.125], [0.625, 0.125]]
    same = vf.figures.patch_map(heads[0], pieces, pieces, query=2, end=1.0)
    assert same.title.endswith("Colours from 0 to 1")
    cut = vf.figures.patch_map(heads[0], pieces, pieces, query=2, end=0.5)
    assert (cut.data[0].zmax, cut.title.split("<br>")[-1]) == (
        0.5,
        "Colours from 0 to 0.5; larger weights look like it",
    )


def test_a_line_surrounds_the_fewest_patches_with_half_of_the_weight() -> None:
    pieces = patches(2, 3, (30, 20))
    weights = np.array([[0.1, 0.3, 0.1], [0.1, 0.3, 0.1]]).reshape(1, 6)
    image = Image.new("RGB", (30, 20))
    figure = vf.figures.patch_map(weights, [], pieces, query=0, image=image, draw="outline")
    line = figure.data[2]
    ends = {(float(x), float(y)) for x, y in zip(line.x, line.y, strict=True) if x == x}
    assert ends == {(0.5, -0.5), (1.5, -0.5), (0.5, 0.5), (1.5, 0.5), (0.5, 1.5), (1.5, 1.5)}
    assert len(line.x) == 3 * 6  # the side between the two is no border
    assert figure.title.endswith("Outlined: the fewest patches with half the weight")
    assert figure.data[0].opacity == 0  # the image is not covered, but can be asked


def test_a_crop_of_a_larger_image_lies_where_it_was_cut() -> None:
    pieces = patches(2, 2, (16, 16))
    weights = np.array([[0.0, 0.0, 0.0, 1.0]])
    image = Image.new("RGB", (100, 50))
    figure = vf.figures.patch_map(weights, [], pieces, query=0, image=image, crop=(20, 10, 40, 40))
    found, _ = lit(svg(figure))  # of the crop the lower right quarter: 40..60 across, 30..50 down
    assert found == pytest.approx([0.4, 0.6, 0.2, 0.4], abs=2e-3)


def test_of_several_grids_one_is_drawn() -> None:
    from dataclasses import replace

    coarse = patches(1, 2, (32, 16))
    fine = [replace(piece, of=replace(piece.of, grid=1)) for piece in patches(2, 4, (32, 16)) if piece.of]
    weights = np.arange(10)[None] / 45
    shapes = [vf.figures.patch_map(weights, [], [*coarse, *fine], query=0, grid=at).data[0].z.shape for at in (0, 1)]
    assert shapes == [(1, 2), (2, 4)]
    with pytest.raises(ValueError, match="none of these tokens is a patch of that grid"):
        vf.figures.patch_map(weights, [], [*coarse, *fine], query=0, grid=2)


@pytest.mark.parametrize("draw", ["overlay", "outline", "mosaic"])
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_file_has_the_image_in(kind: Any, draw: Any) -> None:
    pieces = patches(3, 5, (400, 240))
    noise = np.random.default_rng(0).integers(0, 256, (240, 400, 3)).astype(np.uint8)
    figure = vf.figures.patch_map(
        np.full((1, 15), 1 / 15), [], pieces, query=0, image=Image.fromarray(noise), draw=draw
    )
    drawn = files.as_file(figure, kind, caption="noise")
    assert (len(drawn) > 60_000) == (draw != "mosaic")  # noise cannot be packed


def test_a_large_image_is_made_small_for_the_picture() -> None:
    pieces = patches(2, 4, (4000, 2000))
    figure = vf.figures.patch_map(
        np.full((1, 8), 0.1), [], pieces, query=0, image=Image.new("RGB", (4000, 2000), "red")
    )
    assert len(svg(figure)) < 20_000


def test_the_words_are_those_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_tables, "_translated", lambda words: {"mean_heads": "{n} 个头的平均"})
    pieces = patches(2, 2, (16, 16))
    assert "2 个头的平均" in vf.figures.patch_map(np.full((2, 4, 4), 0.25), pieces, pieces, query=0).title


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (dict(query=None), "either a query or a key"),
        (dict(query=0, key=0), "either a query or a key"),
        (dict(query=4), "there is no row 4 of 4"),
        (dict(query=0, end=0.0), "the colours cannot end at 0"),
        (dict(query=0, pattern=np.full((4, 5), 0.2)), "does not fit 4, 4 pieces"),
        (dict(query=0, pattern=-np.eye(4)), "not below 0"),
        (
            dict(query=0, image=Image.new("RGB", (20, 16))),
            r"given \(16, 16\) pixels, the image has \(20, 16\): say crop",
        ),
        (dict(query=0, image=Image.new("RGB", (20, 16)), crop=(0, 0, 21, 16)), "is no part of an image of 20 × 16"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], told: str) -> None:
    pieces = patches(2, 2, (16, 16))
    pattern = given.pop("pattern", np.eye(4))
    with pytest.raises(ValueError, match=told):
        vf.figures.patch_map(pattern, pieces, pieces, **given)


def test_patches_of_different_sizes_are_no_grid() -> None:
    mixed = [*patches(1, 2, (16, 8))[:1], *patches(1, 2, (12, 8))[1:]]
    with pytest.raises(ValueError, match="must be of one size"):
        vf.figures.patch_map(np.eye(2), mixed, mixed, query=0)

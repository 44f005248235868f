"""Figures as files: opened again, they hold the numbers."""

import csv
import io
import re
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vizformer import figures
from vizformer.figures import files

PATTERN = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]], dtype=np.float32)
TOKENS = ["我", "😀", "a,b"]
CAPTION = "zh-en · 第 3 头"


@pytest.fixture
def figure():
    return figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=np.triu(np.full((3, 3), 2), 1))


def test_a_table_has_a_row_for_each_cell(figure):
    rows = read_csv(figure)
    assert len(rows) == 9
    for row in rows:
        query, key = int(row["query"]), int(row["key"])
        masked = key > query
        assert row["series"] == ("the future" if masked else "")
        assert row["value"] == "" if masked else float(row["value"]) == PATTERN[query, key]
        assert (row["query_name"], row["key_name"]) == (TOKENS[query], TOKENS[key])


def read_csv(figure):
    return list(csv.DictReader(io.StringIO(files.as_file(figure, "csv").decode("utf-8-sig"), newline="")))


def test_the_matrix_of_a_mask_is_written_with_its_blocked_cells():
    reasons = np.array([[0, 2], [1, 0]])
    figure = figures.added_mask(reasons, ["a", "b"], ["a", "b"])
    cells = {(row["query"], row["key"]): (row["series"], float(row["value"])) for row in read_csv(figure)}
    assert cells == {
        ("0", "0"): ("", 0.0),
        ("1", "1"): ("", 0.0),
        ("1", "0"): ("padding", -np.inf),
        ("0", "1"): ("the future", -np.inf),
    }


def test_the_vectors_of_a_token_have_their_names_in_an_archive():
    rows = [np.arange(4, dtype=np.float32), np.ones(4, np.float32)]
    drawn = figures.head_slices(rows, ["x: the input", "q: the queries"], [0, 2])
    with np.load(io.BytesIO(files.as_file(drawn, "npz")), allow_pickle=False) as read:
        np.testing.assert_array_equal(read["0_x_the_input_z"][0], rows[0])
        np.testing.assert_array_equal(read["1_q_the_queries_z"][0], rows[1])


def test_no_cell_of_a_table_is_a_formula():
    """A spreadsheet would run a token that begins like one, whatever it was typed or read from."""
    tokens = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "a=1", "1-1", ""]
    drawn = figures.attention_heatmap(np.eye(11, dtype=np.float32), tokens, tokens)
    names = [row["key_name"] for row in read_csv(drawn) if row["query"] == "0"]
    assert [name.startswith("'") for name in names] == [True] * 8 + [False] * 3
    assert [name.removeprefix("'").strip() for name in names] == [token.strip() for token in tokens]
    assert files.written([[-1.5, np.float32(-2), 3, "-1"]]) == "-1.5,-2.0,3,'-1\r\n"  # a number stays a number


def test_an_archive_opens_without_pickles(figure):
    given = {"weights": PATTERN, "tokens": np.array(TOKENS)}
    with np.load(io.BytesIO(files.as_file(figure, "npz", caption=CAPTION, numbers=given)), allow_pickle=False) as read:
        np.testing.assert_array_equal(read["weights"], PATTERN)
        assert read["tokens"].tolist() == TOKENS
        assert str(read["caption"]) == CAPTION
    with np.load(io.BytesIO(files.as_file(figure, "npz")), allow_pickle=False) as read:
        np.testing.assert_array_equal(read["0_z"][np.tril_indices(3)], PATTERN[np.tril_indices(3)])


def test_a_picture_has_the_colours_of_the_weights(figure):
    read = Image.open(io.BytesIO(files.as_file(figure, "png", caption=CAPTION))).convert("RGB")
    drawn = ET.fromstring(files.as_file(figure, "svg", caption=CAPTION))
    scale = read.width / float(drawn.get("width", ""))
    boxes = next(one for one in drawn.iter() if one.get("class") == "cells")
    for box in boxes:
        at = [int(scale * (float(box.get(name, "")) + 4)) for name in ("x", "y")]
        assert "#{:02x}{:02x}{:02x}".format(*read.getpixel(tuple(at))) == box.get("fill")


def test_a_pdf_is_vectors_with_its_fonts_inside(figure):
    pdf = files.as_file(figure, "pdf", caption=CAPTION)
    assert pdf.startswith(b"%PDF-")
    assert b"/FontFile" in pdf or b"/FontFile3" in streams(pdf)
    assert b"/Subtype/Image" not in (pdf + streams(pdf)).replace(b" ", b"")


def streams(pdf: bytes) -> bytes:
    """What stands packed in a PDF."""
    found = b""
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            found += zlib.decompress(packed.rstrip(b"\r\n"))
        except zlib.error:
            continue
    return found


def test_a_table_of_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr(files, "MOST_ROWS", 10_000)
    size = 101
    large = figures.matrix_heatmap(np.zeros((size, size), np.float32))
    with pytest.raises(ValueError, match="more than 10,000 rows"):
        files.table(large)


def test_without_typst_the_way_out_is_said(figure, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(ImportError, match=r"vizformer\[paper\]"):
        files.as_file(figure, "pdf")
    assert files.as_file(figure, "svg").startswith(b"<svg")


def test_a_page_needs_nothing_from_elsewhere(figure, tmp_path: Path):
    page = files.as_file(figure, "html", caption="<b>").decode()
    assert "&lt;b&gt;" in page
    assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=", page)


def test_another_kind_of_file_is_refused() -> None:
    figure = figures.attention_heatmap(np.ones((1, 1)), ["a"], ["b"])
    with pytest.raises(ValueError, match=r"'bmp' is no kind of file: choose one of .*svg.*html"):
        files.as_file(figure, "bmp")  # type: ignore[arg-type]


def test_signs_of_the_pages_stand_for_what_would_not_be_seen_or_would_turn_the_line():
    tokens = ["a\n", "\t", "  ", "b\u202ec"]
    weights = np.full((4, 4), 0.25, np.float32)
    for figure in (
        figures.attention_heatmap(weights, tokens, tokens),
        figures.attention_lines(weights[None], tokens, tokens, heads=[0]),
        figures.coloured_text(weights[0], tokens),
    ):
        drawn = files.as_file(figure, "svg").decode()
        said = re.findall(r"<text\b[^>]*>([^<]*)</text>", drawn)
        assert {"a" if "a" in said else "a↵", "⇥", "␣␣", "b⟨E2 80 AE⟩c"} <= set(said)
        assert not set("\n\t\u202e") & set("".join(said))


def test_what_no_font_has_is_named_in_a_pdf_and_in_a_png(monkeypatch):
    pytest.importorskip("typst")
    monkeypatch.setattr(files, "_has_glyph", lambda one: one != "猫")
    drawn = []
    monkeypatch.setattr(files, "printed", lambda said, kind: drawn.append((kind, said)) or b"")
    figure = figures.attention_heatmap(np.eye(2), ["猫", "a"], ["é", "b"])
    for kind in ("pdf", "png"):
        files.as_file(figure, kind, caption="head 3")
    assert [kind for kind, _ in drawn] == ["pdf", "png"]
    assert all("no glyph for U+732B CJK UNIFIED IDEOGRAPH-732B" in said and "head 3" in said for _, said in drawn)
    assert "no glyph" not in files.as_file(figure, "svg", caption="head 3").decode()


def test_a_font_has_letters_and_none_has_what_nobody_writes():
    pytest.importorskip("typst")
    assert files._has_glyph("é")
    assert files._has_glyph("↵")
    assert not files._has_glyph("\U0001e8d0")  # a number of Mende Kikakui


def test_the_colours_of_a_map_end_at_1_or_at_its_largest_and_the_scale_says_so():
    weights = np.array([[0.25, 0.01], [0.02, 0.02]], np.float32)
    tokens = ["a", "b"]
    usual, own = (figures.attention_heatmap(weights, tokens, tokens, own_range=own) for own in (False, True))
    assert (usual.parts[0][0]["zmax"], own.parts[0][0]["zmax"]) == (1.0, 0.25)
    assert usual.parts[0][0]["colorbar"]["title"]["text"] == "weight"
    assert ">0–0.25<" in files.as_file(own, "svg").decode()

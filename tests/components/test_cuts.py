"""Tables and rows of tokens as HTML: everything typed is escaped, everything stands where it should."""

import re

import numpy as np
import pytest

from vizformer.components import cuts, listing, lookup


def test_tokens_span_their_bytes() -> None:
    row = cuts.Row("<BPE>", "2 & more", [cuts.Cut("<b>", 0, 3, hint='"x"'), cuts.Cut("猫", 3, 6, unknown=True)])
    html = cuts.to_html([row], width=6, label="a<b")
    assert re.findall(r"grid-column:(\d+)/(\d+)", html) == [("1", "4"), ("4", "7")]
    assert "repeat(6," in html
    assert "&lt;b&gt;" in html
    assert "&lt;BPE&gt;" in html
    assert "2 &amp; more" in html
    assert "<b>" not in html.replace("<b>&lt;BPE&gt;</b>", "")
    assert html.count("vf-cut-unknown") == 1
    assert 'title="&quot;x&quot;"' in html


def test_what_is_behind_the_width_is_left_out_and_what_reaches_over_it_cut() -> None:
    row = cuts.Row("a", "", [cuts.Cut("one", 0, 3), cuts.Cut("two", 3, 9), cuts.Cut("three", 9, 12)])
    html = cuts.to_html([row], width=6)
    assert re.findall(r"grid-column:(\d+)/(\d+)", html) == [("1", "4"), ("4", "7")]
    with pytest.raises(ValueError, match="ends at byte 1"):
        cuts.to_html([cuts.Row("a", "", [cuts.Cut("x", 2, 1)])], width=6)


def test_a_table_of_texts_and_numbers() -> None:
    html = listing.to_html(["a", "n", "bar"], [["<x>", 1234, 1], ["y", 2.5, 4]], chosen=1, bar=2, caption="c&")
    assert "&lt;x&gt;" in html
    assert "1,234" in html
    assert "2.5" in html
    assert re.findall(r"width:([\d.]+)%", html) == ["25.00", "100.00"]
    assert html.index("vf-chosen") > html.index("1,234")
    assert "c&amp;" in html
    with pytest.raises(ValueError, match="1 cells for 3 columns"):
        listing.to_html(["a", "n", "bar"], [["x"]])


def test_words_as_symbols() -> None:
    html = listing.words_html([(["lo", "<w>"], 5), (["lo"], 1)], new="lo")
    assert html.count("class=vf-new") == 2
    assert "&lt;w&gt;" in html
    assert html.count("×") == 1


def test_places_around_an_index() -> None:
    assert lookup.around(5, 100) == [0, 1, None, 4, 5, 6, None, 99]
    assert lookup.around(0, 100) == [0, 1, None, 99]
    assert lookup.around(99, 100) == [0, 1, None, 98, 99]
    assert lookup.around(1, 3) == [0, 1, 2]
    assert lookup.head(9) == [0, 1, 2, 3, None, 8]
    assert lookup.head(5) == [0, 1, 2, 3, 4]


def test_an_elided_table_sets_off_its_row() -> None:
    value = np.arange(6.0).reshape(3, 2)
    html = lookup.to_html(
        value,
        rows=[0, None, 7, 9],
        columns=[0, None, 4],
        caption="E<",
        shape="10 × 5",
        row_names=["<a>", "b", "c"],
        chosen_row=7,
        digits=1,
    )
    rows = html.split("<tr>")
    assert "&lt;a&gt;" in rows[2]
    assert "⋮" in rows[3]
    assert "font-weight" in rows[4]
    assert "2.0" in rows[4]
    assert html.count("font-weight") == 2
    assert "E&lt;" in html
    with pytest.raises(ValueError, match="do not fit"):
        lookup.to_html(value, rows=[0], columns=[0], caption="", shape="")

"""What is taken away from a page, opened again."""

import csv
import dataclasses
import io
import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from vizformer import figures
from vizformer.assets import app_root
from vizformer.components import mask
from vizformer.context_value import held
from vizformer.figures import files
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, head_downloads, in_python
from vizformer.web.words import i18n

SUBJECT = Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "")


@pytest.mark.parametrize(("kind", "scores"), [("encoder", False), ("decoder", False), ("cross", True)])
def test_the_numbers_of_a_head_are_the_traces(kind, scores):
    from vizformer.analysis import site_name

    queries, keys = (["q"] * n for n in SUBJECT.trace[site_name(kind, 1)].pattern(3).shape)
    picture = head_downloads.one_head(SUBJECT, kind, 1, 3, queries, keys, scores=scores)
    record = SUBJECT.trace[site_name(kind, 1)]
    with np.load(io.BytesIO(chart._made(picture, "npz")())) as read:
        np.testing.assert_array_equal(read["weights"], record.pattern(3).numpy())
        np.testing.assert_array_equal(read["scores"], record.scores(3).numpy())
        np.testing.assert_array_equal(read["reasons"], record.reason(3).numpy())
        assert read["key_tokens"].tolist() == [
            token.text for token in SUBJECT.trace.tokens["decoder" if kind == "decoder" else "encoder"]
        ]
    table = chart._made(picture, "csv")().decode("utf-8-sig")
    wanted = (record.scores(3) if scores else record.pattern(3)).numpy()
    for row in csv.DictReader(io.StringIO(table)):
        if row["series"] == "":
            assert float(row["value"]) == pytest.approx(wanted[int(row["query"]), int(row["key"])])
    assert picture.caption.split(" · ")[0].endswith("layer 1, head 3")
    assert "我有一只猫。" in picture.caption


def test_a_page_is_made_by_the_component_and_a_picture_alone_by_plotly():
    made = chart.Picture("x", "", page=lambda: "<html>own</html>")
    assert chart._made(made, "html")() == b"<html>own</html>"


def test_whole_words_are_words_in_the_file_too():
    weights = SUBJECT.trace["encoder.0.self"].pattern(0).numpy()
    found, queries, keys = head_downloads.by_words(SUBJECT, "encoder", weights)
    assert found.shape == (len(queries), len(keys))
    assert "".join(keys) == "".join(token.text for token in SUBJECT.tokens)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)  # sums of float32


@pytest.mark.parametrize("name", ["../../x", "头", "", "a b/c:d"])
def test_names_of_files_are_safe_everywhere(name):
    found = chart._safe(name)
    assert found
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert not found.startswith(".")


def test_every_kind_of_file_has_its_media_type():
    assert set(files.MEDIA) == set(files.KINDS)


def test_a_head_is_told_in_a_sentence_and_as_a_table_of_its_weights():
    pattern = SUBJECT.trace["decoder.1.self"].pattern(3).numpy()
    tokens = [token.text for token in SUBJECT.trace.tokens["decoder"]]
    picture = head_downloads.one_head(SUBJECT, "decoder", 1, 3, tokens, tokens)
    said, table = chart._told(picture)
    n = len(tokens)
    assert {row[:4] for row in table.rows} == {(i, tokens[i], j, tokens[j]) for i in range(n) for j in range(i + 1)}
    assert all(row[4] == pytest.approx(pattern[row[0], row[2]]) for row in table.rows)
    query, key = divmod(int(np.argmax(np.where(np.arange(n)[:, None] > 0, pattern, 0))), n)
    assert f"query {query} “{tokens[query]}” attends to key {key} “{tokens[key]}”" in said


def test_the_table_of_a_head_is_made_once_and_anew_for_other_numbers_or_another_language(monkeypatch):
    tokens, made = [token.text for token in SUBJECT.trace.tokens["decoder"]], []

    def told(head=2, **how):
        picture = head_downloads.one_head(SUBJECT, "decoder", 0, head, tokens, tokens, **how)
        counted = dataclasses.replace(picture, figure=lambda: made.append(head) or picture.figure())
        return chart._told(counted)

    first = told()
    assert told() == first
    assert len(made) == 1
    assert told(head=3) != first
    assert told(scores=True) != first
    assert len(made) == 3
    monkeypatch.setattr(chart, "language", lambda: "zh_CN")
    told()
    assert len(made) == 4


@pytest.mark.parametrize(
    ("model", "text", "kind"), [("zh-en", "我有一只猫。", "cross"), ("stories", "Once upon a time", "decoder")]
)
def test_the_code_that_is_copied_finds_the_pattern_on_the_page(model, text, kind, monkeypatch):
    monkeypatch.chdir(app_root())
    subject = Subject(ModelRef("bundled", model), text, "")
    found = in_python.of_head(subject, kind, 1, 2)
    assert list(found) == ["vizformer", "torch"]
    for package, code in found.items():
        exec(code, space := {})
        wanted = subject.trace[f"decoder.1.{'cross' if kind == 'cross' else 'self'}"].pattern(2)
        assert (space["pattern"] - wanted).abs().max() < 1e-5, package


def test_code_without_this_package_is_not_offered_for_numbers_set_by_hand_or_another_precision():
    edited = Subject(ModelRef("bundled", "stories"), "Once upon a time", "", edited="decoder.0.self!unscaled")
    assert list(in_python.of_head(edited, "decoder", 1, 2)) == ["vizformer"]
    half = Subject(ModelRef("bundled", "stories", dtype="bfloat16"), "Once upon a time", "")
    assert list(in_python.of_head(half, "decoder", 1, 2)) == ["vizformer"]


def test_every_picture_of_the_pages_has_its_table_in_the_same_file():
    pictures = "attention|heatmap|lines|mask|player|reading|tree|whole_model_picture"
    charts = r"tinted_text\.to_html|st\)?\.(?:plotly|bar|line|area|scatter|altair)_chart"
    drawn = re.compile(rf"\b(?:(?:{pictures})\.mount|{charts})\(")
    found = {path: path.read_text(encoding="utf-8") for path in Path(chart.__file__).parents[1].rglob("*.py")}
    draws = {path.name: text for path, text in found.items() if drawn.search(text)}
    assert {"picture.py", "chart.py", "inputs.py"} <= draws.keys()
    told = re.compile(r"\btake_away\(|\bdata_table\.show\(")
    assert not [name for name, text in draws.items() if not told.search(text)]


def test_no_cell_of_a_table_on_a_page_is_a_formula():
    """The browser writes a table of Streamlit's as CSV by itself."""

    def script():
        from vizformer.web.widgets import data_table

        data_table.show({"=a": ["=1+1", "cat"], "n": [-1.5, -2.0]}, hide_index=True)

    frame = AppTest.from_function(script).run().dataframe[0].value
    assert list(frame.columns) == ["\u2060=a", "n"]
    assert frame["\u2060=a"].tolist() == ["\u2060=1+1", "cat"]
    assert frame["n"].tolist() == [-1.5, -2.0]
    pages = Path(chart.__file__).parents[1].rglob("*.py")
    assert [path.name for path in pages if "st.dataframe(" in path.read_text(encoding="utf-8")] == ["data_table.py"]


@pytest.mark.parametrize(("most", "offered"), [(6, True), (5, False)])
def test_a_csv_of_too_many_values_is_not_offered_and_says_what_is(monkeypatch, most, offered):
    buttons = {}
    monkeypatch.setattr(files, "MOST_ROWS", most)
    monkeypatch.setattr(chart, "_button", lambda label, *_, missing=None: buttons.update({label: missing}))
    picture = chart.Picture("x", "", lambda: figures.matrix_heatmap(np.ones((2, 3)), ["a", "b"], ["c", "d", "e"]))
    chart._files(picture, "x")
    assert (buttons["CSV"] is None) is offered
    if offered:
        assert chart._made(picture, "csv")()
    else:
        assert "The NPZ holds all of them" in buttons["CSV"]
    assert buttons["NPZ"] is None


def test_a_file_is_made_in_the_language_of_the_reader_who_asked_for_it() -> None:
    drawn = chart.Picture("head", "", lambda: figures.attention_heatmap(np.eye(2), ["a", "b"], ["a", "b"]))
    with held(i18n.SPEAKING, "zh_CN"):
        make = chart._made(drawn, "csv")
    assert "query" in chart._made(drawn, "csv")().decode()
    for _ in range(2):  # it may be made again, outside of any page
        assert make().decode("utf-8-sig").splitlines()[0] == "series,键,键_name,查询,查询_name,value"


def test_a_mask_over_a_head_is_taken_away_panel_by_panel():
    rng, reasons = np.random.default_rng(0), np.triu(np.full((3, 3), 2, np.uint8), 1)
    scores, weights = rng.normal(size=(3, 3)), np.tril(rng.random((3, 3)))
    view = mask.MaskView(["a", "b", "c"], ["a", "b", "c"], reasons, scores, weights)
    pictures = head_downloads.mask(view, "decoder")
    assert [picture.title for picture in pictures] == ["Mask M", "Scores S", "Weights softmax(S + M)"]
    seen = []
    for picture in pictures:
        rows = list(csv.DictReader(io.StringIO(chart._made(picture, "csv")().decode("utf-8-sig"))))
        seen.append({(int(row["query"]), int(row["key"])): float(row["value"]) for row in rows if row["value"]})
        assert chart._made(picture, "svg")().startswith(b"<svg")
    below = [(i, j) for i in range(3) for j in range(i + 1)]
    assert seen[0] == {(i, j): 0.0 if j <= i else -np.inf for i in range(3) for j in range(3)}
    assert seen[1] == pytest.approx({(i, j): scores[i, j] for i in range(3) for j in range(3)})
    assert seen[2] == pytest.approx({place: weights[place] for place in below})
    assert len(head_downloads.mask(mask.MaskView(["a"], ["a"], reasons[:1, :1]), "")) == 1

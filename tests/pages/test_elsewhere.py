"""The page From other programs: a file of arrays becomes the pictures of the page Attention, without a model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import vizformer as vf
from recipes.attention_example import SENTENCE
from tests import recorded_models
from tests.analysis.test_attention_arrays import npz, weights
from tests.bundled import load
from tests.components.test_mount import sent as mounted
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.recorder import hand_written
from vizformer.analysis import head_maps
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.errors import TraceError
from vizformer.web.catalogue import uploads
from vizformer.web.catalogue.bounded_cache import VARIABLE
from vizformer.web.catalogue.session_folders import GRACE, Watch
from vizformer.web.pages import elsewhere
from vizformer.web.widgets.chart import colours_said

PAGE = "pages/explore/elsewhere.py"


def handed_in(app: AppTest, content: bytes, name: str = "maps.npz", **tokens: str) -> AppTest:
    app.file_uploader[0].upload(name, content, "application/octet-stream")
    for side, text in tokens.items():
        app.text_area(key=f"elsewhere.{side}").set_value(text)
    return next(button for button in app.button if button.label in ("Show", "显示")).click().run()


def test_too_many_tokens_get_words(open_app: Open) -> None:
    app = open_app(PAGE)
    assert (
        app.text_area(key="elsewhere.queries").proto.max_chars == 0
    )  # else a browser ignores, silently, what is longer
    app = handed_in(app, npz(maps=weights(2, 3, 4, 4)), queries="a " * 50_001)
    assert not app.exception
    assert "100,002 characters; at most 100,000" in said(app).replace("\u2060", "")


def test_a_file_becomes_a_map_with_the_tokens_of_the_reader(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(maps=weights(2, 3, 4, 4)), queries="the cat sat down")
    assert not app.exception
    assert not app.error
    assert "has the shape [2, 3, 4, 4]" in said(app).replace("\\", "")  # nothing is drawn before it is answered
    assert not app.get("bidi_component")
    app.button(key="elsewhere.first.layers").click().run()
    assert "2 layers, 3 heads, maps of 4 × 4" in said(app)
    data = mounted(app)
    assert data["query_tokens"] == data["key_tokens"] == ["the", "cat", "sat", "down"]
    assert not app.file_uploader[0].value  # an empty box for the next
    app.segmented_control(key="elsewhere.picture").set_value("lines").run()
    assert not app.exception
    assert mounted(app)["query_tokens"][0] == "the"


def test_it_begins_with_arrays_that_were_saved_from_the_bundled_translator(open_app: Open) -> None:
    app = open_app(PAGE)
    assert not app.exception
    assert not app.error
    data, trace = mounted(app), load("zh-en").trace(SENTENCE)
    assert data["key_tokens"] == [token.text for token in trace.tokens["encoder"]]
    assert data["query_tokens"] == [token.text for token in trace.tokens["decoder"]]
    (found,) = (arrays for arrays, _ in elsewhere.example().values())
    np.testing.assert_allclose(found.weights, head_maps(trace, "cross").weights, atol=1e-5)
    chosen = data["selected"]["layer"], data["selected"]["head"], data["selected"]["query"]
    assert chosen == elsewhere.telling_place(found)
    assert found.weights[chosen].max() > 0.5
    assert "An example" in said(app)
    assert "An example" not in said(handed_in(app, npz(maps=weights(2, 3, 4, 4))))


def test_the_texts_of_a_batch_are_chosen_between_once_the_reader_says_that_they_are_some(open_app: Open) -> None:
    maps = weights(2, 3, 4, 4)
    app = handed_in(open_app(PAGE), npz(maps=maps), queries="the cat sat down")
    app.button(key="elsewhere.first.texts").click().run()
    assert app.selectbox(key="elsewhere.group").options == ["maps[0]", "maps[1]"]
    app.selectbox(key="elsewhere.group").set_value("maps[1]").run()
    assert not app.exception
    assert "1 layer, 3 heads, maps of 4 × 4" in said(app)
    assert mounted(app)["query_tokens"] == ["the", "cat", "sat", "down"]
    held = app.session_state[elsewhere._FOUND].found()
    np.testing.assert_array_equal(held["maps[1]"][0].weights[0], maps[1])


def test_more_texts_than_are_shown_are_refused_once_they_are_said_to_be_some(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(maps=weights(65, 1, 2, 2)))
    app.button(key="elsewhere.first.texts").click().run()
    assert not app.exception
    assert any("at most 64 are shown" in box.value for box in app.error)
    app.button(key="elsewhere.first.layers").click().run()
    assert mounted(app)["shape"] == [65, 1, 2, 2]


def test_every_kind_of_file_is_taken_or_refused_for_what_it_is(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), b"PK", name="maps.pt")
    assert any("pickle, which is not run here" in box.value for box in app.error)
    app = handed_in(app, b"x", name="maps.mat")
    assert any("Save the arrays in one of these" in box.value for box in app.error)
    app = handed_in(
        app, json.dumps({"attentions": weights(2, 3, 3).tolist(), "tokens": list("abc")}).encode(), name="a.json"
    )
    assert not app.error
    assert mounted(app)["query_tokens"] == ["a", "b", "c"]


def test_rows_of_nan_are_counted_and_the_map_is_drawn(open_app: Open) -> None:
    maps = weights(1, 2, 4, 4)
    maps[0, 0, 1] = np.nan
    app = handed_in(open_app(PAGE), npz(maps=maps))
    assert not app.exception
    assert any("1 of 8 rows have NaN in them" in info.value for info in app.info)
    assert mounted(app)["shape"] == [1, 2, 4, 4]
    app.segmented_control(key="elsewhere.picture").set_value("lines").run()
    assert not app.exception


def test_one_token_per_line_may_have_blanks_in_it(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(maps=weights(1, 2, 2, 3)), queries="a cat\na dog", keys="1 2 3")
    data = mounted(app)
    assert (data["query_tokens"], data["key_tokens"]) == (["a cat", "a dog"], ["1", "2", "3"])


def test_rows_that_do_not_sum_to_1_and_what_is_no_attention_are_said(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(maps=weights(1, 2, 4, 4) * 0.5))
    assert any("8 of 8 rows do not sum to 1" in info.value for info in app.info)
    app = handed_in(app, npz(maps=weights(1, 2, 4, 4) * 9))
    assert not app.exception
    assert any("weights are from 0 to 1" in box.value for box in app.error)
    assert not any("do not sum" in info.value for info in app.info)  # what was there before is gone
    app = handed_in(app, b"PK\x03\x04")
    assert any("cannot be read" in box.value for box in app.error)


def test_several_kinds_of_attention_are_chosen_between(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(cross=weights(2, 3, 4, 5), encoder=weights(2, 3, 5, 5)))
    app.button(key="elsewhere.first.layers").click().run()
    app.selectbox(key="elsewhere.group").set_value("encoder").run()
    app.button(key="elsewhere.first.layers").click().run()
    assert app.selectbox(key="elsewhere.group").options == ["cross", "encoder"]
    app.selectbox(key="elsewhere.group").set_value("cross").run()
    assert len(mounted(app)["query_tokens"]) == 4
    app.selectbox(key="elsewhere.group").set_value("encoder").run()
    assert not app.exception
    assert len(mounted(app)["query_tokens"]) == 5


def test_maps_that_do_not_fit_go_one_head_at_a_time(open_app: Open) -> None:
    app = handed_in(open_app(PAGE), npz(maps=weights(4, 4, 300, 300).astype(np.float16)))
    app.button(key="elsewhere.first.layers").click().run()
    assert not app.exception
    assert mounted(app)["shape"] == [4, 4, 300, 300]


def test_in_chinese_and_without_uploads(open_app: Open, monkeypatch) -> None:
    app = handed_in(open_app(PAGE, locale="zh-CN"), npz(maps=weights(1, 2, 4, 4) * 0.5))
    assert any("8 行中有 8 行的和不是 1" in info.value for info in app.info)
    monkeypatch.setenv(uploads.SWITCH, "off")
    app = open_app(PAGE)
    assert not app.get("file_uploader")
    assert any("takes no uploads" in info.value for info in app.info)


def test_a_file_without_the_form_sent_changes_nothing(open_app: Open) -> None:
    app = open_app(PAGE)
    next(button for button in app.button if button.label == "Show").click().run()
    assert any("Choose a file first" in box.value for box in app.error)


def test_what_many_hand_in_is_kept_as_long_as_there_is_room(open_app: Open, monkeypatch) -> None:
    """A small file may become large, and a tab may be closed: neither fills the memory of the server."""
    monkeypatch.setenv(VARIABLE, str(4 * 2**20))  # bytes, of which half are for such arrays
    content = npz(maps=np.eye(512, dtype=bool)[None, None])  # a megabyte as it is kept
    assert len(content) < 2**12
    apps = [handed_in(open_app(PAGE), content) for _ in range(4)]
    assert elsewhere._ARRAYS.bytes < 2 * 2**20 + 2**16
    assert mounted(apps[-1].run())["shape"] == [1, 1, 512, 512]
    assert any("needed the memory for others" in box.value for box in apps[0].run().error)
    assert not apps[0].exception
    assert mounted(handed_in(apps[0], content))["shape"] == [1, 1, 512, 512]


def test_what_a_session_handed_in_goes_when_it_ends() -> None:
    away, now = Watch(lambda session: False, lambda: 0.0), elsewhere._ARRAYS.bytes
    held = elsewhere._HandedIn(read_attention("a.npz", npz(maps=weights(1, 2, 9, 9))), away)
    assert elsewhere._ARRAYS.bytes > now
    away.look()
    away._clock = lambda: GRACE + 1
    away.look()
    assert elsewhere._ARRAYS.bytes == now
    with pytest.raises(TraceError, match="Upload the file again"):
        held.found()
    elsewhere._HandedIn(
        read_attention("a.npz", npz(maps=weights(1, 2, 9, 9)))
    )  # and is gone: another file took its place
    assert elsewhere._ARRAYS.bytes == now


def test_a_caption_says_where_the_colours_of_the_map_end() -> None:
    assert colours_said("absolute") == ()
    assert colours_said("own") == ("colours up to the largest of this map",)


@pytest.mark.parametrize("kind", ["decoder", "encoder", "translator", "Sinks", "HandSoftmax"])
def test_a_recorded_run_that_was_saved_anywhere_is_drawn(open_app: Open, tmp_path: Path, kind: str) -> None:
    labels = ["The", "dog", "was", "tired", "so"]
    if kind in hand_written.KINDS:
        trace = vf.record(hand_written.GPT(hand_written.KINDS[kind]), hand_written.ids(n=5)).with_tokens(labels)
    else:
        module, _ = getattr(recorded_models, kind)()
        given = {"decoder_input_ids": torch.tensor([[2, 9, 8]])} if kind == "translator" else {}
        trace = vf.record(module, torch.tensor([[2, 5, 6, 7, 8]]), **given).with_tokens(labels, ["<s>", "un", "chien"])
    trace.save(tmp_path / "run.safetensors", model="elsewhere")
    app = handed_in(open_app(PAGE), (tmp_path / "run.safetensors").read_bytes(), "run.safetensors")
    assert not app.exception
    assert not app.error
    names = app.selectbox(key="elsewhere.group").options if kind == "translator" else [None]
    assert len(names) == (3 if kind == "translator" else 1)
    for name in names:
        app = app if name is None else app.selectbox(key="elsewhere.group").set_value(name).run()
        data = mounted(app)
        queries = ["<s>", "un", "chien"] if name in ("decoder", "cross") else labels
        keys = ["<s>", "un", "chien"] if name == "decoder" else labels
        assert (data["query_tokens"], data["key_tokens"]) == (queries, keys)
        assert data["shape"] == [2, 4, len(queries), len(keys)]

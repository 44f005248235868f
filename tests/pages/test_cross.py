"""Lesson Cross-attention: what is on the screen is what the library computes, and the code on it runs."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, marked, number, run, said, tables
from vizformer.analysis import alignment, alignment_score, linked, read_alignments
from vizformer.analysis.decoding.teacher_forcing import change_memory, probabilities, written
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.assets import asset
from vizformer.explain.encoder_decoder import attended, empty_memory, memory_readers
from vizformer.training.repeater import as_symbols, load_repeater, say_again, share_right
from vizformer.web.link.view import usual_query

PAGE = "pages/learn/cross.py"
TEXT = "他十分钟前离开了。"
ONE_STACK = {"stories": "The cat sat on the chair.", "cloze": "She opened the door."}


@pytest.fixture(scope="module")
def translator():
    checkpoint = load("zh-en")
    return checkpoint, checkpoint.trace(TEXT)


def text(app) -> str:
    return "\n".join(element.value for element in app.text)


def mounted(app, name):
    return [box for box in app.get("bidi_component") if box.proto.component_name == f"vizformer_{name}"]


def drawn(app) -> tuple[dict, dict[str, np.ndarray]]:
    """What the map on the page was sent: its texts and marks, and its numbers, [queries, keys] each."""
    (heatmap,) = mounted(app, "heatmap")
    data = json.loads(heatmap.proto.mixed.json)
    sent = [pa.ipc.open_stream(blob.data).read_all() for blob in heatmap.proto.mixed.arrow_blobs.values()]
    return data, {one.column_names[0]: one.column(0).to_numpy().reshape(data["shape"][2:]) for one in sent}


# --- three ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "row"), [("encoder", 0), ("decoder", 1), ("cross", 2)])
def test_the_table_and_the_drawing_light_up_together(open_app: Open, translator, kind, row) -> None:
    checkpoint, trace = translator
    app = open_app(PAGE, text=TEXT, dials=f"cross.kind:{kind}")
    rows = tables(app)[0]
    n, m = len(trace.tokens["encoder"]), len(trace.tokens["decoder"])
    assert [cells[3] for cells in rows] == [f"[{n}, {n}]", f"[{m}, {m}]", f"[{m}, {n}]"]
    assert rows[1][4] == f"causal: {m * (m - 1) // 2} of {m * m} cells"
    assert marked(app, 0) == [row]
    found = attended(checkpoint, trace, ("encoder.0.self", "decoder.0.self", "decoder.0.cross"))[row]
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)
    (drawing,) = mounted(app, "whole_model_picture")
    data = json.loads(drawing.proto.mixed.json)
    assert [one["kind"] for lane in data["lanes"] for one in lane["maps"]][data["look"][0]] == kind
    left = run(app.code[0].value)
    assert left["scores"].shape == found.scores


def test_of_one_attention_alone_no_choice_is_offered(open_app: Open) -> None:
    app = open_app(PAGE, model="stories", text=ONE_STACK["stories"])
    assert not app.exception
    assert [group.key for group in app.button_group] == ["lesson.part.cross"]


def test_a_head_of_the_picture_chooses_the_row(open_app: Open) -> None:
    app = open_app(PAGE, text=TEXT)
    assert marked(app, 0) == [2]
    press = {"does": "opened", "kind": "decoder", "layer": 1, "head": 2, "query": 0}
    app.session_state["cross.plan"] = {"selected": {**press, "seq": 1.0}}
    app = app.run()
    assert marked(app, 0) == [1]
    app.session_state["cross.plan"] = {"selected": {**press, "kind": "encoder", "box": "feedforward", "seq": 2.0}}
    assert marked(app.run(), 0) == [1]  # no attention: nothing changes


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ONE_STACK)
def test_a_model_of_one_stack_says_why_and_leads_to_one_of_two(open_app: Open, model) -> None:
    for part in ("", "memory", "alignment", "without", "bottleneck"):
        app = open_app(PAGE, model=model, text=ONE_STACK[model], part=part)
        assert not app.exception
        assert not app.error
        assert any("no cross-attention" in info.value for info in app.info), part
        assert any(button.label == "Use the model zh-en" for button in app.button)
    app = next(button for button in app.button if button.label == "Use the model zh-en").click().run()
    assert not any("no cross-attention" in info.value for info in app.info)
    assert app.selectbox(key="view.model").value.name == "zh-en"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_keys_come_from_the_end_of_the_encoder_alone(open_app: Open, translator) -> None:
    checkpoint, trace = translator
    readers = memory_readers(checkpoint, trace)
    app = open_app(PAGE, part="memory", text=TEXT, layer=1, head=2)
    assert [number(row[1]) for row in tables(app)[0]] == [0, 0, 0]
    assert [number(row[2]) for row in tables(app)[0]] == pytest.approx([r.apart for r in readers], rel=0.01)
    assert any("bit for bit" in box.value for box in app.success)
    data, columns = drawn(app)
    assert data["view"] == "scores"
    np.testing.assert_allclose(columns["scores"], trace["decoder.1.cross"].scores(2), atol=1e-5)
    np.testing.assert_allclose(columns["weights"], trace["decoder.1.cross"].pattern(2), atol=1e-6)
    n, m = len(trace.tokens["encoder"]), len(trace.tokens["decoder"])
    assert f"{n * m} cells" in text(app)
    assert f"{2 * n * 256 * 256:,} multiplications" in text(app)
    assert "This layer has 3 add & norms" in text(app)
    cross = [layer.cross_attention for layer in checkpoint.model.decoder.layers]
    record = trace["decoder.1.cross"]
    given = dict(M=trace.residual("encoder.final"), W_K=torch.stack([one.W_K.weight.T for one in cross]))
    left = run(app.code[0].value, **given, q=record.q[2], k=record.k[2])
    biased = left["K"] + torch.stack([one.W_K.bias for one in cross])[:, None]
    for layer in range(3):
        expected = trace[f"decoder.{layer}.cross"].k.transpose(0, 1).flatten(1)
        np.testing.assert_allclose(biased[layer].detach(), expected, atol=1e-4)
    np.testing.assert_allclose(left["S"], record.scores(2), atol=1e-4)
    app = open_app(PAGE, part="memory", text=TEXT, dials="cross.source:0")
    shown = [number(row[1]) for row in tables(app)[0]]
    assert shown == pytest.approx([r.distances["encoder.0.post"] for r in readers], rel=0.01)


# --- alignment --------------------------------------------------------------------------------------------------------


def test_the_ring_is_what_the_layer_looks_at_most(open_app: Open, translator) -> None:
    _, trace = translator
    found = alignment(trace)
    app = open_app(PAGE, part="alignment", text=TEXT)
    data, columns = drawn(app)
    np.testing.assert_allclose(columns["weights"], found.weights[2], atol=1e-6)
    assert data["rings"] == found.mean[2].tolist()
    assert "3 of 15 pairs of words change their order." in text(app)
    app = open_app(PAGE, part="alignment", text=TEXT, dials="cross.layer:1~cross.head:3")
    data, columns = drawn(app)
    np.testing.assert_allclose(columns["weights"], trace["decoder.1.cross"].pattern(3), atol=1e-6)
    assert data["rings"] == found.by_head[1, 3].tolist()


@pytest.mark.sweep
def test_every_head_is_scored_on_the_pairs_of_the_card(open_app: Open, translator) -> None:
    checkpoint, _ = translator
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    score = alignment_score(checkpoint, pairs)
    app = open_app(PAGE, part="alignment", text=TEXT)
    shown = [[number(cell) for cell in row[1:]] for row in tables(app)[0]]
    np.testing.assert_allclose(shown, 100 * np.concatenate([score.by_head, score.found[:, None]], 1), atol=0.51)
    assert f"{round(score.found[2] * score.words)} of {score.words} words" in text(app)
    card = json.loads(asset("models", "zh-en", "evaluation.json").read_text(encoding="utf-8"))
    assert shown[2][-1] == round(100 * card["alignment"]["found"])


def test_a_pair_aligned_by_hand_takes_the_place_of_the_sentence(open_app: Open, translator) -> None:
    checkpoint, _ = translator
    assert "Aligned by hand" in text(open_app(PAGE, part="alignment", text=TEXT))  # written by the model itself
    app = open_app(PAGE, part="alignment", text="我有一只猫。")
    assert "Aligned by hand" not in text(app)
    app = app.selectbox(key="cross.pair").set_value(1).run()
    pair = read_alignments(asset("models", "zh-en", "alignment.tsv"))[1]
    assert [box.value for box in app.text_input[:2]] == [pair.source, pair.target]
    trace = checkpoint.trace(pair.source, target=pair.target)
    links = linked(pair, trace.tokens["encoder"], trace.tokens["decoder"])
    right = sum(int(alignment(trace).mean[2][link.row]) in link.columns for link in links)
    assert f"{right} of {len(links)} content words" in text(app)
    assert drawn(app)[0]["squares"] == [[link.row, column] for link in links for column in link.columns]


def test_the_cell_that_is_asked_for_is_that_of_the_token_before(open_app: Open, translator) -> None:
    _, trace = translator
    app = open_app(PAGE, part="alignment", text=TEXT)
    (grid,) = mounted(app, "cells")
    data = json.loads(grid.proto.json)
    assert data["values"] is None
    assert data["rows"] == [token.text for token in trace.tokens["decoder"]]
    question = next(m.value.replace("\\", "") for m in app.markdown if "Which cell" in m.value)
    row = next(i for i in range(len(data["rows"]) - 1) if f"“{data['rows'][i + 1]}”" in question)
    key = next(box.key for box in app.selectbox if box.key.startswith("ask.cross.cell.row"))
    app.selectbox(key=key).set_value(row)
    app = app.selectbox(key=key.replace(".row.", ".column.")).set_value(int(alignment(trace).mean[2][row])).run()
    app = next(button for button in app.button if button.key.startswith("ask.cross.cell.button")).click().run()
    assert any(box.value.startswith("**Right") for box in app.success)


# --- without ----------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("dials", "change"),
    [
        ("cross.token:4", ("without", {"token": 4})),
        ("cross.change:zero", ("zero", {})),
        ("cross.change:other", ("other", {"other": "我喜欢喝水。"})),
        ("cross.change:own", ("own", {})),
    ],
)
def test_the_translation_is_written_anew(open_app: Open, translator, dials, change) -> None:
    checkpoint, trace = translator
    app = open_app(PAGE, part="without", text=TEXT, dials=dials)
    memory = change_memory(checkpoint, trace, change[0], **change[1])
    assert [element.value for element in app.text[:2]] == ["He left ten minutes ago.", written(checkpoint, memory).text]
    before = probabilities(checkpoint, trace, trace.residual("encoder.final"))
    after = probabilities(checkpoint, trace, memory)
    rows = tables(app)[0]
    assert [row[0] for row in rows] == [*(t.text for t in trace.tokens["decoder"][1:]), "</s>"]
    for column, values in ((1, before), (2, after)):
        shown = [0 if row[column].startswith("<") else number(row[column]) for row in rows]
        assert shown == pytest.approx(100 * values, abs=0.06)
    empty = empty_memory(checkpoint, trace, 2)
    assert any(f"{empty.proof.difference:.1g}" in box.value for box in app.success)
    assert f"{empty.weight:.4f}" in said(app)
    left = run(app.code[0].value)
    assert left["weights"].shape == (4, len(trace.tokens["encoder"]))
    torch.testing.assert_close(left["weights"], torch.full_like(left["weights"], empty.weight))
    torch.testing.assert_close(left["z"], left["b_V"].expand(4, -1))


def test_a_click_takes_a_token_out(open_app: Open) -> None:
    app, checkpoint = open_app(PAGE, part="without", text=TEXT), load("zh-en")
    app.session_state["cross.tokens"] = {"selected": {"index": 4}}
    app = app.run()
    assert "cross.token:4" in str(app.query_params["dials"])
    memory = change_memory(checkpoint, checkpoint.trace(TEXT), "without", token=4)
    assert app.text[1].value == written(checkpoint, memory).text


# --- bottleneck -------------------------------------------------------------------------------------------------------


def test_both_networks_say_the_tokens_again(open_app: Open, translator) -> None:
    checkpoint, _ = translator
    long = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"
    app = open_app(PAGE, part="bottleneck", text=long)
    symbols = as_symbols([token.id for token in checkpoint.encode(long)])
    results = [say_again(load_repeater(asset("lessons", "cross"), memory), symbols) for memory in ("one", "every")]
    rows = tables(app)[0]
    for column, result in zip((2, 3), results, strict=True):
        right = [row[column].startswith("✓") for row in rows]
        assert right == [a == b for a, b in zip(result.symbols, symbols, strict=True)]
    one, every = (share_right(result.symbols, symbols) for result in results)
    assert one < 0.5 < 0.9 < every
    assert f"{one:.0%} from one vector, {every:.0%} from" in text(app)
    notes = json.loads(asset("lessons", "cross", "bottleneck.json").read_text(encoding="utf-8"))
    for curve, memory in zip(chart(app, 0)["data"], ("one", "every"), strict=True):
        np.testing.assert_allclose(array(curve["y"]), 100 * np.array(notes["measured"][memory]["right"]), atol=1e-4)
    at = [f"{notes['measured'][memory]['right'][len(symbols) - 1]:.0%}" for memory in ("one", "every")]
    assert (
        f"{len(symbols)} symbols, as many as the networks read of your text: {at[0]} right from one vector, {at[1]} from"
        in text(app)
    )
    np.testing.assert_allclose(drawn(app)[1]["weights"], results[1].looked, atol=1e-6)
    left = run(app.code[0].value)
    assert left["one"].shape == left["every"].shape == (len(symbols), 64)


def test_a_longer_text_is_said_again_as_far_as_there_are_symbols(open_app: Open) -> None:
    app = open_app(PAGE, part="bottleneck", model="stories", text="the cat sat " * 40)
    assert len(tables(app)[0]) == 32


def test_one_memory_opens_on_the_head_whose_row_says_most_of_a_source_word(open_app: Open) -> None:
    sentence = "他喜欢喝水。"
    trace = load("zh-en").trace(sentence)
    found = find_telling_head(trace, "cross", usual_query(trace.tokens["decoder"]))
    assert (found.layer, found.head) != (0, 0)
    app = open_app(PAGE, part="memory", text=sentence)
    assert not app.exception
    assert app.selectbox(key="view.layer").value == found.layer
    assert app.selectbox(key="view.head").value == found.head
    __, arrays = drawn(app)
    np.testing.assert_allclose(arrays["weights"], trace[f"decoder.{found.layer}.cross"].pattern(found.head), atol=1e-6)
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)
    app = open_app(PAGE, part="memory", text=sentence, head=0)  # a link always wins
    assert app.selectbox(key="view.head").value == 0


def test_one_memory_opens_on_the_head_that_says_most(open_app):
    app = open_app("pages/learn/cross.py", part="memory", model="zh-en", text="我有一只猫。")
    trace = load("zh-en").trace("我有一只猫。")
    found = find_telling_head(trace, "cross", usual_query(trace.tokens["decoder"]))
    assert found is not None
    assert (found.layer, found.head) != (0, 0)
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)

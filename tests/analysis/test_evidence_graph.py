"""The graph of an answer: it sums to the logit, its patches take out what its edges say, and planted circuits are in it."""

import numpy as np
import pytest

from tests import planted_circuits, tiny
from tests.analysis.test_logit_lens import every_model, traced
from tests.bundled import load
from vizformer.analysis import answer_evidence, logit_attribution, score_split, taken_out, value_writers
from vizformer.analysis.attribution.backward import attention_at, output_rows
from vizformer.analysis.causes.ablation import Part, sweep
from vizformer.analysis.causes.evidence_graph import Node
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit


def graph(checkpoint, trace, position=-1, **options):
    token = int(trace.logits[position].argmax())
    return answer_evidence(checkpoint, trace, position, token, **options)


@pytest.mark.parametrize("against", ["mean", None, 5])
@every_model
@pytest.mark.sample(6)
def test_every_part_passes_on_what_enters_it(name, against):
    checkpoint, trace = traced(name)
    found = graph(checkpoint, trace, against=against, most=12)
    assert found.proof.holds, found.proof
    assert len(found.edges) <= 12
    recorded = trace.logits[-1].double()
    other = 0.0 if against is None else float(recorded.mean() if against == "mean" else recorded[against])
    assert found.logit == pytest.approx(float(recorded[found.token]) - other, abs=1e-5)
    values = [edge for edge in found.edges if edge.way == "value"]
    assert len({(edge.writer, edge.reader) for edge in found.edges}) == len(found.edges)  # none is drawn twice
    for node, left in found.others.items():
        out = found.logit if node == found.answer else sum(edge.direct for edge in values if edge.writer == node)
        assert sum(edge.direct for edge in found.into(node)) + left == pytest.approx(out, abs=1e-4)


@every_model
@pytest.mark.sample(4)
def test_the_edges_are_those_of_the_attribution(name):
    checkpoint, trace = traced(name)
    found = graph(checkpoint, trace, most=200)
    terms = logit_attribution(checkpoint, trace, -1, found.token)
    heads = {(term.place, term.head): term.value for term in terms.terms if term.part == "head"}
    into = {edge.writer: edge.direct for edge in found.into(found.answer)}
    largest = max(map(abs, into.values()))
    for (place, head), value in heads.items():
        node = Node("head", place, found.position, head)
        if node not in into:
            assert abs(value) < 0.02 * max(largest, max(abs(edge.direct) for edge in found.edges))
            continue
        assert into[node] == pytest.approx(value)
        if any(edge.writer == node and edge.reader != found.answer for edge in found.edges):
            continue  # (what enters it becomes logit on several ways)
        own = output_rows(attention_at(checkpoint, place), head) @ terms.directions[place]
        for edge in found.into(node):  # what the patch takes out of the head is what the edge says
            assert edge.direct == pytest.approx(-(edge.patch.value.numpy() @ own), abs=1e-6)


LOOKS = [
    ("cloze", "The girl lost [MASK] hat in the garden.", 4),
    ("stories", "The girl lost", 3),
    ("zh-en", "我有一只猫，它很喜欢吃鱼。", 6),
    ("zh-en", "我有一只猫，它很喜欢吃鱼。", 8),
]


@pytest.mark.parametrize(("model", "text", "row"), LOOKS)
def test_an_edge_of_a_look_is_taken_out_of_that_look_alone(model, text, row):
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    found = graph(checkpoint, trace, row)
    assert len({(edge.writer, edge.reader) for edge in found.edges}) == len(found.edges)
    looks = [edge for edge in found.edges if edge.way != "value"]
    for edge in looks:
        site, _, part = edge.patch.tensor.rpartition(".")
        assert part == "pattern"  # the head that looks, not one of the earlier ones
        if edge.way == "key" and edge.reader.place != site:  # behind a look, of whose key one score changes
            head, query = edge.patch.index
            moved = np.log(trace[site].pattern(head)[query].numpy()) - np.log(np.asarray(edge.patch.value))
            assert np.ptp(moved) == pytest.approx(abs(edge.direct), abs=1e-3)


@pytest.mark.parametrize(("model", "text", "row", "total"), [(*LOOKS[0], 0.107), (*LOOKS[2], 0.011)])
def test_the_total_effect_behind_a_look_is_far_from_that_of_all_routes(model, text, row, total):
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    found = graph(checkpoint, trace, row)
    removed = taken_out(checkpoint, trace, found)
    looks = [one.total for edge, one in zip(found.edges, removed, strict=True) if edge.way != "value"]
    assert looks[0] == pytest.approx(total, abs=2e-3)
    assert max(looks) < 0.2  # by all routes of the earlier head: 0.85 and 3.46


@every_model
@pytest.mark.sample(4)
def test_an_edge_of_a_token_leaves_out_what_drawn_heads_have_written_alone(name):
    checkpoint, trace = traced(name)
    for most in (4, 12):
        found = graph(checkpoint, trace, most=most)
        for edge in found.edges:
            token, head = edge.writer, edge.reader
            if edge.way != "value" or token.part != "token" or head.part != "head":
                continue
            record, weight = trace[head.place], float(trace[head.place].pattern(head.head)[head.row, token.row])
            left = record.v[record.kv_head(head.head), token.row].double().numpy()
            drawn = [one.writer for one in found.into(head) if one.writer.part == "head"]
            if any(writer.row == token.row for writer in drawn):
                written = value_writers(checkpoint, trace, head.place, head.head, token.row)
                for one, vector in zip(written.writers, written.vectors, strict=True):
                    if Node("head", one.place, token.row, one.head) in drawn:
                        left = left - vector
            np.testing.assert_allclose(edge.patch.value.numpy(), -weight * left, atol=1e-5)


@every_model
@pytest.mark.sample(4)
def test_a_value_is_the_sum_of_what_was_written_into_its_row(name):
    checkpoint, trace = traced(name)
    for site in trace.sites:
        record = trace[site]
        written = value_writers(checkpoint, trace, site, 1, 2)
        np.testing.assert_allclose(written.vectors.sum(0), record.v[record.kv_head(1), 2].double(), atol=1e-5)


@pytest.mark.parametrize(
    ("model", "text"), [("stories", "Once upon a time"), ("zh-en", "我有一只猫。"), ("cloze", "a cat")]
)
def test_the_total_effect_is_that_of_the_ablation(model, text):
    """At the last row of the last layer: what an ablation takes out at other rows is not read there."""
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    found = graph(checkpoint, trace, against=None, most=60)
    removed = taken_out(checkpoint, trace, found)
    stack, last = ("encoder", 3) if model == "cloze" else ("decoder", 4 if model == "stories" else 2)
    compared = 0
    for edge, one in zip(found.edges, removed, strict=True):
        if edge.reader == found.answer and edge.writer.place.startswith(f"{stack}.{last}."):
            part = Part(edge.writer.place, edge.writer.head)
            (effect,) = sweep(checkpoint, trace, found.position, found.token, parts=[part], loss=False)
            assert one.total == pytest.approx(-effect.logit, abs=1e-4)
            before = float(trace.logits[found.position].double().softmax(-1)[found.token])
            # a probability moves by at most a quarter of what its logit does
            assert one.probability == pytest.approx(before + effect.probability, abs=0.25e-4)
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize(
    "name", ["induction", "negative_induction", "duplicate", "s_inhibition", "copy_suppression", "chain"]
)
def test_the_heads_of_a_planted_circuit_are_the_strongest(name):
    planted = getattr(planted_circuits, name)()
    checkpoint, row = planted.checkpoint, planted.prompts.rows[0]
    trace = checkpoint.trace(row.clean)
    found = answer_evidence(checkpoint, trace, -1, checkpoint.encode(row.answer)[-1].id)
    working = {edge.writer for edge in planted.known if edge.writer != "embedding"}
    drawn = {f"{edge.writer.place}.{edge.writer.head}" for edge in found.edges if edge.writer.part == "head"}
    assert working <= drawn
    strong = [edge for edge in found.edges if edge.way != "value" or abs(edge.direct) > 0.2 * abs(found.logit)]
    named = {f"{end.place}.{end.head}" for edge in strong for end in (edge.writer, edge.reader) if end.part == "head"}
    assert named >= working
    assert len(named - working) <= 1  # (a head of random weights that reads what a working one wrote)
    for edge, sign in planted.known.items():
        if edge.reader == "logits":
            (own,) = (one for one in found.into(found.answer) if f"{one.writer.place}.{one.writer.head}" == edge.writer)
            assert np.sign(own.direct) == sign


def test_the_previous_token_head_has_no_share_and_a_total_effect():
    """It works through the look of the induction head: that edge taken out, the answer is gone."""
    planted = planted_circuits.induction()
    checkpoint = planted.checkpoint
    trace = checkpoint.trace("a b c d a")
    found = graph(checkpoint, trace)
    removed = dict(zip(found.edges, taken_out(checkpoint, trace, found), strict=True))
    ((edge, one),) = (
        (edge, one)
        for edge, one in removed.items()
        if edge.reader == Node("head", "decoder.1.self", 5, 2) and edge.way == "key"
    )
    assert edge.writer == Node("head", "decoder.0.self", 2, 1)
    split = score_split(checkpoint, trace, "decoder.1.self", 2, 5, 2, against_mean=True)
    assert edge.score == pytest.approx(split.score)
    assert edge.direct > 0.5 * split.score
    assert one.total > 5
    assert one.probability < 0.1


def test_self_repair_is_seen_where_a_head_suppresses_what_another_has_said():
    """Without the head that says the answer, the one that suppresses it has less to suppress."""
    planted = planted_circuits.copy_suppression()
    trace = planted.checkpoint.trace(planted.prompts.rows[0].clean)
    found = graph(planted.checkpoint, trace)
    removed = taken_out(planted.checkpoint, trace, found)
    mover = next(at for at, edge in enumerate(found.edges) if edge.writer == Node("head", "decoder.0.self", 4, 0))
    assert found.edges[mover].direct > removed[mover].total + 1.0


def test_the_table_has_every_edge_and_what_is_left():
    checkpoint = load("stories")
    trace = checkpoint.trace("Once upon a time")
    found = graph(checkpoint, trace)
    frame = found.to_frame(taken_out(checkpoint, trace, found))
    assert len(frame) == len(found.edges) + len(found.others)
    into = frame[(frame.reader == f"logit@{found.position}") & (frame.way == "value")]
    assert into.direct.sum() == pytest.approx(found.logit, abs=1e-4)
    assert frame.total.notna().sum() == len(found.edges)


def test_numbers_set_by_hand_are_followed():
    checkpoint = tiny.checkpoint("decoder-only", norm_order="pre", final_norm=True)
    edit = Edit(cells=(Cell("decoder.0.post", (3, 1), 2.0),))
    trace = checkpoint.trace("我有一只猫。", edit=edit)
    found = graph(checkpoint, trace, 3)
    assert found.proof.holds
    assert all(np.isfinite(one.total) for one in taken_out(checkpoint, trace, found))


def test_what_cannot_be_asked_is_said():
    checkpoint, trace = traced("pre, tied")
    with pytest.raises(TraceError, match="At least one edge"):
        answer_evidence(checkpoint, trace, 0, 5, most=0)
    with pytest.raises(TraceError):
        answer_evidence(checkpoint, trace, 99, 5)
    with pytest.raises(TraceError):
        answer_evidence(checkpoint, trace, 0, 10**6)

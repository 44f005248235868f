"""Circuits by edge attribution: identities of the graph, circuits that were built by hand, and plain forwards beside."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from tests.planted_circuits import PLANTED, Planted
from vizformer.analysis import (
    PromptRow,
    PromptSet,
    bundled_set,
    edge_scores,
    faithfulness,
    measured_edges,
)
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.asked_prompts import ask
from vizformer.analysis.causes.edge_attribution import SUM_WITHIN, Edge, EdgeScores, circuit_differences
from vizformer.analysis.causes.model_graph import ModelGraph, all_of
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch

PRE = dict(norm_order="pre", final_norm=True)
KINDS_OF_MODEL = {
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "GPT-2": dict(architecture="decoder-only", positions="learned", activation="gelu_tanh", **PRE),
    "ALiBi": dict(architecture="decoder-only", **tiny.ALIBI, **PRE),
    "Qwen3": dict(architecture="decoder-only", **tiny.QWEN3),
    "scaled": dict(architecture="decoder-only", **tiny.SCALED),
    "turned": dict(architecture="decoder-only", **tiny.ROPE),
}
IDS = [5, 6, 7, 8, 9]


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(3)
def test_the_graph_with_all_its_edges_is_the_model(name: str) -> None:
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    graph, trace = ModelGraph(checkpoint), checkpoint.trace(ids=IDS)
    with torch.inference_mode():
        logits, written = graph.forward(trace, trace.residual(f"{graph.stack.name}.0.pre")[None], 3, all_of)
    tiny.assert_close(logits[0], trace.logits[3])
    assert written.shape[1] == len(graph.writers) == 1 + 2 * (checkpoint.model.config.n_heads + 1)
    assert graph.edges.shape == (len(graph.writers), len(graph.readers))
    assert not graph.edges[-1, :-1].any()  # the last network writes for the logits alone
    assert graph.edges[:, -1].all()
    assert graph.edges[0].all()


def made(name: str) -> tuple[Checkpoint, PromptSet]:
    words = (("cats", "dogs"), ("dogs", "cats"))
    rows = tuple(PromptRow(f"The {a} are here", f"The {b} are here", "猫", "和") for a, b in words)
    return tiny.checkpoint(**KINDS_OF_MODEL[name]), PromptSet("tiny", rows)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_all_edges_are_the_clean_run_no_edge_is_the_corrupted_one_and_the_scores_are_complete(name: str) -> None:
    checkpoint, prompts = made(name)
    graph = ModelGraph(checkpoint)
    every = [Edge(graph.writers[u], graph.readers[v]) for u, v in np.argwhere(graph.edges).tolist()]
    assert circuit_differences(checkpoint, prompts, [every, []]) == pytest.approx([1.0, 0.0], abs=1e-4)
    scores = edge_scores(checkpoint, prompts, steps=40)
    assert scores.scores[:, 0].sum(-1) == pytest.approx([1.0, 1.0], abs=0.02)  # (the integral, by 40 points)
    assert (scores.scores[:, ~scores.edges] == 0).all()


def test_one_gradient_at_a_point_is_the_slope_of_the_edge() -> None:
    """The last network reads each head: an edge that is cut by a thousandth moves LD by a thousandth of its score there."""
    checkpoint, prompts = made("GPT-2")
    rows = (prompts.rows[0], prompts.rows[0])
    scores = edge_scores(checkpoint, PromptSet("same", rows), steps=1)
    graph, pair = ModelGraph(checkpoint), ask(checkpoint, rows[0]).pair()
    clean, corrupted = (run.residual("decoder.0.pre") for run in (pair.clean, pair.corrupted))
    middle, small = (clean + corrupted) / 2, 1e-3
    edge = Edge("decoder.0.self.2", "decoder.1.feedforward")
    writer, reader = graph.writers.index(edge.writer), graph.readers.index(edge.reader)
    with torch.inference_mode():
        change = (
            graph.forward(pair.clean, clean[None], pair.row, all_of)[1]
            - graph.forward(pair.clean, corrupted[None], pair.row, all_of)[1]
        )[0, writer]

        def run(sign: float) -> float:
            def incoming(readers: slice, out: list[torch.Tensor], biases: torch.Tensor) -> torch.Tensor:
                read = all_of(readers, out, biases).clone()
                if readers.start <= reader < readers.stop:
                    read[:, reader - readers.start] += sign * small * change
                return read

            return float(pair.difference_at_row(graph.forward(pair.clean, middle[None], pair.row, incoming)[0][0]))

    assert scores.of(edge) == pytest.approx((run(1) - run(-1)) / (2 * small) / pair.moved, abs=2e-2)


@pytest.fixture(scope="module", params=PLANTED)
def planted(request: pytest.FixtureRequest) -> tuple[Planted, EdgeScores]:
    model = PLANTED[request.param]()
    return model, edge_scores(model.checkpoint, model.prompts)


def test_a_planted_circuit_is_found_whole_and_nothing_else(planted: tuple[Planted, EdgeScores]) -> None:
    model, scores = planted
    for found in (scores.strongest(len(model.known)), scores.circuit(len(model.known))):
        right = set(found) & set(model.known)
        precision, recall = len(right) / len(found), len(right) / len(model.known)
        assert (precision, recall) == (1.0, 1.0)
    for edge, sign in model.known.items():
        assert np.sign(scores.of(edge)) == sign, edge
    others = [scores.of(edge) for edge in scores.strongest(500) if edge not in model.known]
    assert np.abs(others).max() < 0.05
    heads = {edge.writer for edge in scores.circuit(len(model.known))} - {"embedding"}
    assert heads == {edge.writer for edge in model.known} - {"embedding"}


def test_its_edges_alone_answer_and_each_is_needed(planted: tuple[Planted, EdgeScores]) -> None:
    model, scores = planted
    curve = faithfulness(model.checkpoint, model.prompts, scores, [len(model.known)], draws=20)
    assert curve.circuit[0] == pytest.approx(1.0, abs=0.06)  # (the random heads write a little)
    assert np.abs(curve.random).mean() < 0.5  # (of two edges of one layer some drawn ones are the circuit itself)
    known = list(model.known)
    measured = measured_edges(model.checkpoint, model.prompts, known)
    assert (np.sign(measured) == [model.known[edge] for edge in known]).all()
    assert np.abs(measured).min() > 0.5


def test_steps_are_doubled_until_the_edges_out_of_the_embedding_sum_to_1(planted: tuple[Planted, EdgeScores]) -> None:
    model, scores = planted
    assert scores.holds
    np.testing.assert_allclose(scores.sums, 1.0, atol=SUM_WITHIN)
    np.testing.assert_allclose(scores.sums, scores.scores[:, scores.writers.index("embedding")].sum(-1))
    few = edge_scores(model.checkpoint, model.prompts, most_steps=5)
    assert few.steps == 5
    assert few.holds == (scores.steps == 5)


def test_what_no_number_of_steps_brings_to_1_is_said() -> None:
    """Sharper than any step: of all ways between two prompts the softmax leaps at one point."""
    model = PLANTED["s_inhibition"]()
    with torch.no_grad():
        for layer in model.checkpoint.model.decoder.layers:  # type: ignore[union-attr]
            layer.self_attention.W_Q.weight *= 1000.0
    scores, told = edge_scores(model.checkpoint, model.prompts, most_steps=20), scores_told(model)
    assert scores.steps == 20
    assert not scores.holds
    assert told == sorted(told)


def scores_told(model: Planted) -> list[tuple[int, int]]:
    """What is heard of work that is begun anew with more steps."""
    told = list[tuple[int, int]]()
    edge_scores(model.checkpoint, model.prompts, most_steps=20, heard=lambda *heard: told.append(heard))
    return told


@pytest.mark.parametrize("name", ["s_inhibition", "shared keys"])
def test_drawn_circuits_are_connected_and_have_the_edges_that_they_should(name: str) -> None:
    if name == "s_inhibition":
        model = PLANTED[name]()
        scores = edge_scores(model.checkpoint, model.prompts, most_steps=5)
    else:
        checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA)
        graph = ModelGraph(checkpoint)
        zero = np.zeros((2, len(graph.writers), len(graph.readers)))
        config = checkpoint.model.config
        scores = EdgeScores(graph.writers, graph.readers, graph.edges, zero, config.n_heads // config.kv_heads, 1)
        assert scores.shared > 1
    every = int(scores.edges.sum())
    for count in (1, 2, 3, 7, every // 2, every - 1, every):
        drawn = [scores.drawn(count, seed) for seed in range(6)]
        for edges in drawn:
            assert len(set(edges)) == len(edges) == count
            assert scores._connected(edges) == edges  # a way from the embedding goes along each
            read = {"logits"}
            for _ in edges:
                read |= {reader for edge in edges if edge.reader in read for reader in scores._readers_of(edge.writer)}
            assert {edge.reader for edge in edges} <= read  # and a way to the logits
        assert drawn[0] == scores.drawn(count, 0)
        assert len(set(map(frozenset, drawn))) > 1 or count in (1, every)


def test_an_edge_into_the_logits_is_a_plain_forward_with_all_other_heads_held() -> None:
    """Of a model whose networks are 0."""
    model = PLANTED["negative_induction"]()
    row = model.prompts.rows[0]
    pair = ask(model.checkpoint, row).pair()
    heads = [Part(f"decoder.{layer}.self", number) for layer in range(2) for number in range(4)]
    edges = [Edge(f"{part.sublayer}.{part.head}", "logits") for part in heads]
    found = measured_edges(model.checkpoint, PromptSet("same", (row, row)), edges)
    for share, sender in zip(found, heads, strict=True):
        runs = [(one, pair.corrupted if one == sender else pair.clean) for one in heads]
        held = Edit(
            patches=tuple(Patch(f"{one.sublayer}.z", (one.head,), run[one.sublayer].z(one.head)) for one, run in runs)
        )
        logits = model.checkpoint.trace(row.clean, edit=held).logits
        assert float(pair.difference(pair.clean.logits) - pair.difference(logits)) / pair.moved == pytest.approx(
            share, abs=1e-5
        )


def test_a_trained_models_circuit_is_far_from_a_drawn_one() -> None:
    checkpoint, told = load("stories"), list[tuple[int, int]]()
    prompts = PromptSet("few", bundled_set("gender.stories").rows[:4])
    scores = edge_scores(checkpoint, prompts, heard=lambda *heard: told.append(heard))
    assert told[-1] == (4000, 4000)
    assert told == sorted(told)
    curve = faithfulness(checkpoint, prompts, scores, [80, 1701], draws=2)
    assert curve.circuit[0] > 0.8
    assert curve.random[0].max() < 0.05
    assert curve.circuit[1] == pytest.approx(1.0, abs=1e-4)
    frame = scores.to_frame()
    assert len(frame) == scores.edges.sum() == 1701
    assert frame.score.abs().is_monotonic_decreasing
    assert Edge(frame.writer[0], frame.reader[0]) == scores.strongest(1)[0]
    assert list(curve.to_frame().edges) == [len(scores.circuit(80)), 1701]
    edges = scores.strongest(6)
    measured = measured_edges(checkpoint, prompts, edges)
    assert np.corrcoef(measured, [scores.of(edge) for edge in edges])[0, 1] > 0.9


def test_shared_keys_belong_to_all_heads_that_share_them() -> None:
    checkpoint, prompts = made("LLaMA")
    scores = edge_scores(checkpoint, prompts, steps=2)
    assert scores.shared == 2
    writers = {edge.writer for edge in scores.circuit(30)}
    for edge in scores.circuit(30):
        if edge.reader.endswith((".k", ".v")):
            site, _, number = edge.reader.rpartition(".")[0].rpartition(".")
            assert {f"{site}.{2 * int(number)}", f"{site}.{2 * int(number) + 1}"} & writers


def test_what_cannot_be_followed_is_refused_and_what_heard_raises_ends_it() -> None:
    for changes in (dict(), dict(architecture="decoder-only")):
        with pytest.raises(TraceError, match="plain sum"):
            ModelGraph(tiny.checkpoint(**changes))
    checkpoint, prompts = made("GPT-2")
    assert measured_edges(checkpoint, prompts, []).shape == (0,)
    with pytest.raises(TraceError, match="no edge from embedding to x"):
        circuit_differences(checkpoint, prompts, [[Edge("embedding", "x")]])
    with pytest.raises(TraceError, match="one step or more"):
        edge_scores(checkpoint, prompts, steps=0)

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        edge_scores(checkpoint, prompts, heard=stop)
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())

"""Circuits: which edges of a model carry an answer, by their gradients, and how well the model answers with these alone.

With LD as in `prompt_pairs`, an edge from a writer u to a reader v (`model_graph`) has the score

    score(u, v) = sum((u(clean) - u(corrupted)) * mean over steps of dLD/d(input of v)) / (LD(clean) - LD(corrupted))

where the gradients are taken along the straight way from the corrupted embedding to the clean one, in the middle of each
of so many steps (EAP-IG; with one gradient at the corrupted run it is EAP).  It estimates the share of the difference that
goes along the edge; the scores of the edges out of the embedding sum to 1 as the steps become many.  Where a softmax is
sharp few steps pass by all that happens, and scores mean nothing: the steps are doubled until this sum is 1 for every
prompt, within SUM_WITHIN.

A circuit is judged by a run over the clean prompt in which all its edges are as they are, and every other edge carries what
it carried in the corrupted run:

    faithfulness = (LD(circuit) - LD(corrupted)) / (LD(clean) - LD(corrupted)),   means over the prompts

which is 1 for all edges and 0 for none (of pairs between which LD falls, with the sign turned round); beside it stand drawn
circuits of as many edges, each of which is on a way from the embedding to the logits, as those of the circuit are.  An edge
is measured, not estimated, by a run in which it alone carries what it carried in the corrupted run: the share of LD that is
lost.

Source: Hanna et al. 2024, "Have Faith in Faithfulness: Going Beyond Circuit Overlap When Finding Model Mechanisms" (EAP-IG,
faithfulness); Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery" (EAP); Goldowsky-Dill et al.
2023, "Localizing Model Behavior with Path Patching".
"""

import heapq
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.asked_prompts import read_rows
from vizformer.analysis.causes.batches import Heard
from vizformer.analysis.causes.model_graph import ModelGraph, all_of
from vizformer.analysis.causes.prompt_pairs import PromptPair
from vizformer.analysis.causes.prompt_sets import PromptSet
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Trace

STEPS, MOST_STEPS = 5, 320  # of the integral: with how many it begins, and how often they are doubled
SUM_WITHIN = 0.02
"""The largest allowed |sum - 1| of a prompt's edges out of the embedding, for the integral to count as converged."""
DRAWN_TRIES = 20  # until a drawn circuit has exactly as many edges as it should
MOST_NUMBERS = 2**26  # of all that is written in a batch of runs: 256 MiB in float32


class Edge(NamedTuple):
    """An edge from a writer to a reader, as `ModelGraph` names them."""

    writer: str
    reader: str


@dataclass(frozen=True)
class EdgeScores:
    """The score of every edge, see the module.

    Attributes:
        writers, readers: the names of the rows and of the columns.
        edges: which cells are edges.
        scores: of each prompt [prompts, writers, readers]; 0 where there is no edge.
        shared: how many heads in a row share a key and a value.
        steps: of the integral.
    """

    writers: tuple[str, ...]
    readers: tuple[str, ...]
    edges: Bool[ndarray, "writers readers"]
    scores: Float[ndarray, "prompts writers readers"]
    shared: int
    steps: int

    @property
    def sums(self) -> Float[ndarray, " prompts"]:
        """The sum of the edges out of the embedding, of each prompt: 1 where there were steps enough."""
        return self.scores[:, self.writers.index("embedding")].sum(-1)

    @property
    def holds(self) -> bool:
        """Whether these sums are 1, within SUM_WITHIN; otherwise the scores mean nothing."""
        return bool((np.abs(self.sums - 1.0) <= SUM_WITHIN).all())

    @property
    def mean(self) -> Float[ndarray, "writers readers"]:
        return self.scores.mean(0)

    def of(self, edge: Edge) -> float:
        """The mean score of an edge."""
        return float(self.mean[self.writers.index(edge.writer), self.readers.index(edge.reader)])

    def strongest(self, count: int) -> tuple[Edge, ...]:
        """The `count` edges with the largest |mean score|, the largest first."""
        size = np.where(self.edges, np.abs(self.mean), -1.0)
        places = np.argsort(-size, axis=None, kind="stable")[: min(count, int(self.edges.sum()))]
        return tuple(self._edge(int(at)) for at in places)

    def circuit(self, count: int) -> tuple[Edge, ...]:
        """At most `count` edges, grown from the logits: each time the strongest edge into a part that is already included.

        Edges that are on no path from the embedding are removed at the end.
        """
        size, readers = np.abs(self.mean), {name: at for at, name in enumerate(self.readers)}
        found, waiting, there = dict[Edge, None](), list[tuple[float, Edge]](), set[str]()

        def enter(reader: str) -> None:
            if reader not in there:
                there.add(reader)
                for at in np.flatnonzero(self.edges[:, readers[reader]]).tolist():
                    edge = Edge(self.writers[at], reader)
                    heapq.heappush(waiting, (-float(size[at, readers[reader]]), edge))

        enter("logits")
        while waiting and len(found) < count:
            edge = heapq.heappop(waiting)[1]
            found[edge] = None
            for reader in self._readers_of(edge.writer):
                enter(reader)
        return self._connected(tuple(found))

    def _connected(self, kept: tuple[Edge, ...]) -> tuple[Edge, ...]:
        """The edges of `kept` that are on a path from the embedding; all of `kept` are on a path to the logits."""
        written = {"embedding"}
        for writer in self.writers:  # in the order of the forward
            if any(edge.reader in self._readers_of(writer) and edge.writer in written for edge in kept):
                written.add(writer)
        left = tuple(edge for edge in kept if edge.writer in written)
        return left if left == kept else self._connected(left)

    def _readers_of(self, writer: str) -> tuple[str, ...]:
        """The readers (query, key, value, or the network) that belong to a part."""
        if writer == "embedding" or writer.endswith("feedforward"):
            return () if writer == "embedding" else (writer,)
        site, _, head = writer.rpartition(".")
        return (f"{writer}.q", *(f"{site}.{int(head) // self.shared}.{part}" for part in "kv"))

    def drawn(self, count: int, seed: int) -> tuple[Edge, ...]:
        """`count` random edges, each on a path from the embedding to the logits that consists of drawn edges.

        Edges are taken in random order, each with a random path from the embedding to it and from it to the logits, as far
        as these are not drawn already and `count` allows.
        """
        rng, found = np.random.default_rng(seed), dict[Edge, None]()
        for _ in range(DRAWN_TRIES):
            found = self._grown(min(count, int(self.edges.sum())), rng)
            if len(found) == min(count, int(self.edges.sum())):
                break
        return tuple(found)

    def _grown(self, count: int, rng: np.random.Generator) -> dict[Edge, None]:
        found, there = dict[Edge, None](), {"embedding", "logits"}
        every = [self._edge(int(at)) for at in rng.permutation(np.flatnonzero(self.edges.ravel()))]
        into, out_of = dict[str, list[Edge]](), dict[str, list[Edge]]()
        for edge in every:
            into.setdefault(self._part(edge.reader), []).append(edge)
            out_of.setdefault(edge.writer, []).append(edge)

        def way(edge: Edge) -> dict[Edge, None]:
            """The edge, with a random path that joins it to the parts already drawn."""
            whole, first, last = {edge: None}, edge.writer, self._part(edge.reader)
            while first not in there:
                whole[more := into[first][rng.integers(len(into[first]))]] = None
                first = more.writer
            while last not in there:
                whole[more := out_of[last][rng.integers(len(out_of[last]))]] = None
                last = self._part(more.reader)
            return whole

        while len(found) < count:
            before = len(found)
            for edge in every:
                if edge not in found and len(more := way(edge)) <= count - len(found):
                    found |= more
                    there |= {one.writer for one in more} | {self._part(one.reader) for one in more}
            if len(found) == before:
                break
        return found

    def _part(self, reader: str) -> str:
        """The writer name of the part with this reader; for a shared key or value that of the first head that uses it."""
        if reader == "logits" or reader.endswith("feedforward"):
            return reader
        name, part = reader.rsplit(".", 1)
        site, _, number = name.rpartition(".")
        return name if part == "q" else f"{site}.{int(number) * self.shared}"

    def _edge(self, at: int) -> Edge:
        writer, reader = divmod(at, len(self.readers))
        return Edge(self.writers[writer], self.readers[reader])

    def to_frame(self) -> Any:
        """A DataFrame: a row for each edge, the largest |score| first, with the deviation over prompts."""
        places = [
            (edge, (self.writers.index(edge.writer), self.readers.index(edge.reader)))
            for edge in self.strongest(int(self.edges.sum()))
        ]
        mean, spread = self.mean, self.scores.std(0)
        rows = ((*edge, mean[at], spread[at]) for edge, at in places)
        return frame(rows, (*Edge._fields, "score", "spread"))


@dataclass(frozen=True)
class Faithfulness:
    """The faithfulness of circuits of several sizes, and of random ones of the same sizes.

    Attributes:
        sizes: numbers of edges, of the circuits and of the drawn ones.
        circuit: of the strongest edges, see the module.
        random: of drawn ones [sizes, draws].
    """

    sizes: tuple[int, ...]
    circuit: Float[ndarray, " sizes"]
    random: Float[ndarray, "sizes draws"]

    def to_frame(self) -> Any:
        """A DataFrame: edges, circuit, and the mean, the least and the most of the drawn ones."""
        import pandas as pd

        drawn = self.random
        columns = {"random": drawn.mean(1), "random_least": drawn.min(1), "random_most": drawn.max(1)}
        return pd.DataFrame({"edges": self.sizes, "circuit": self.circuit, **columns})


def edge_scores(
    checkpoint: AnyCheckpoint,
    prompts: PromptSet,
    *,
    steps: int = STEPS,
    most_steps: int = MOST_STEPS,
    heard: Heard | None = None,
) -> EdgeScores:
    """EAP-IG of every edge, for every pair of a set.

    Args:
        steps: of the integral; they are doubled until `EdgeScores.holds`.
        most_steps: above which they are not doubled any more: then it may not hold.

    Raises:
        TraceError: fewer than two pairs can be read, or a model whose edges cannot be followed (`ModelGraph`).
    """
    if steps < 1:
        raise TraceError("The integral needs one step or more.")
    graph, pairs, furthest = ModelGraph(checkpoint), _pairs(checkpoint, prompts), 0.0
    config = checkpoint.model.config

    def told(number: int, of: int, done: int) -> None:
        """Reports the steps done of a pair; after the steps are doubled, nothing until the earlier maximum is passed."""
        nonlocal furthest
        furthest = max(furthest, (number + done / of) / len(pairs))
        if heard is not None:
            heard(round(furthest * 1000 * len(pairs)), 1000 * len(pairs))

    while True:
        found = list[ndarray]()
        for number, pair in enumerate(pairs):
            scores = _scores(graph, pair, steps, partial(told, number, steps))
            found.append(scores)
            if (
                2 * steps <= most_steps and not abs(scores[0].sum() - 1.0) <= SUM_WITHIN
            ):  # (row 0: out of the embedding)
                break
        else:
            shared = config.n_heads // config.kv_heads
            return EdgeScores(graph.writers, graph.readers, graph.edges, np.stack(found), shared, steps)
        steps *= 2


def _scores(
    graph: ModelGraph, pair: PromptPair, steps: int, told: Callable[[int], None]
) -> Float[ndarray, "writers readers"]:
    """The score of every edge for one pair."""
    clean, corrupted = (_embedding(graph, run) for run in (pair.clean, pair.corrupted))
    n, d = clean.shape
    with torch.inference_mode():
        (_, written), (_, other) = (graph.forward(pair.clean, x[None], pair.row, all_of) for x in (clean, corrupted))
        change = (written - other)[0].clone()
    total = torch.zeros(len(graph.readers), n, d, device=clean.device)
    for step in range(steps):
        with torch.inference_mode(False), torch.enable_grad():
            added = torch.zeros_like(total).requires_grad_()

            def incoming(readers: slice, out: list[Tensor], biases: Tensor, added: Tensor = added) -> Tensor:
                return all_of(readers, out, biases) + added[readers]

            first = (corrupted + (step + 0.5) / steps * (clean - corrupted)).clone()[None]
            logits, _ = graph.forward(pair.clean, first, pair.row, incoming)
            (gradient,) = torch.autograd.grad(pair.difference_at_row(logits[0]), added)
        total += gradient / steps
        told(step + 1)
    scores = torch.einsum("und,vnd->uv", change.double(), total.double()).cpu().numpy() / pair.moved
    return np.where(graph.edges, scores, 0.0)


def faithfulness(
    checkpoint: AnyCheckpoint,
    prompts: PromptSet,
    scores: EdgeScores,
    sizes: Sequence[int] = (),
    *,
    draws: int = 5,
    seed: int = 0,
    heard: Heard | None = None,
) -> Faithfulness:
    """The faithfulness of circuits of several sizes, beside drawn ones of the same size.

    Args:
        sizes: numbers of edges that circuits may have; a dozen, from 1 to all, where nothing is said.  A circuit may have
            fewer (`EdgeScores.circuit`), and one without any edge is left out.
        heard: as `edge_scores`, told of circuits times prompts.

    Raises:
        TraceError: as `edge_scores`.
    """
    most = int(scores.edges.sum())
    wanted = tuple(sizes) or tuple(dict.fromkeys(np.geomspace(1, most, 12).round().astype(int).tolist()))
    grown = {len(edges): edges for size in wanted if (edges := scores.circuit(size))}
    kept = tuple(grown)
    circuits = list(grown.values())
    circuits += [scores.drawn(size, seed + draw) for size in kept for draw in range(draws)]
    found = circuit_differences(checkpoint, prompts, circuits, heard=heard)
    circuit, drawn = found[: len(kept)], found[len(kept) :].reshape(len(kept), draws)
    return Faithfulness(kept, circuit, drawn)


def circuit_differences(
    checkpoint: AnyCheckpoint, prompts: PromptSet, circuits: Sequence[Collection[Edge]], *, heard: Heard | None = None
) -> Float[ndarray, " circuits"]:
    """The faithfulness of each circuit over a set.

    Raises:
        TraceError: as `edge_scores`; an edge that the model does not have.
    """
    graph, pairs = ModelGraph(checkpoint), _pairs(checkpoint, prompts)
    if not circuits:
        return np.zeros(0)
    kept = torch.stack([_kept(graph, circuit) for circuit in circuits])
    totals = np.zeros(len(circuits))
    for number, pair in enumerate(pairs):
        tell = None if heard is None else lambda done, of, at=number: heard(at * of + done, len(pairs) * of)
        change = _run(graph, pair, kept, tell) - float(pair.difference(pair.corrupted.logits))
        totals += np.sign(pair.moved) * change
    return totals / sum(abs(pair.moved) for pair in pairs)


def measured_edges(
    checkpoint: AnyCheckpoint, prompts: PromptSet, edges: Sequence[Edge], *, heard: Heard | None = None
) -> Float[ndarray, " edges"]:
    """The share of LD that is lost where one edge alone is cut, of each edge, over a set.

    Raises:
        TraceError: as `circuit_differences`.
    """
    every = set(_names(ModelGraph(checkpoint)))
    return 1.0 - circuit_differences(checkpoint, prompts, [every - {edge} for edge in edges], heard=heard)


def _names(graph: ModelGraph) -> list[Edge]:
    writers, readers = graph.writers, graph.readers
    return [Edge(writers[u], readers[v]) for u, v in np.argwhere(graph.edges).tolist()]


def _kept(graph: ModelGraph, circuit: Collection[Edge]) -> Float[Tensor, "writers readers"]:
    writers, readers = ({name: at for at, name in enumerate(names)} for names in (graph.writers, graph.readers))
    found, allowed = torch.zeros(len(writers), len(readers)), graph.edges
    for writer, reader in circuit:
        if writer not in writers or reader not in readers or not allowed[writers[writer], readers[reader]]:
            raise TraceError("This model has no edge from {writer} to {reader}.", writer=writer, reader=reader)
        found[writers[writer], readers[reader]] = 1.0
    return found


@torch.inference_mode()
def _run(
    graph: ModelGraph, pair: PromptPair, kept: Float[Tensor, "circuits writers readers"], heard: Heard | None
) -> Float[ndarray, " circuits"]:
    """LD of the clean prompt with each circuit, the other edges as in the corrupted run."""
    clean, corrupted = (_embedding(graph, run) for run in (pair.clean, pair.corrupted))
    other = graph.forward(pair.clean, corrupted[None], pair.row, all_of)[1][0]  # [writers, n, d_model]
    size, found = max(1, MOST_NUMBERS // (2 * other.numel())), list[ndarray]()
    for first in range(0, len(kept), size):
        mask = kept[first : first + size].to(other)

        def incoming(readers: slice, out: list[Tensor], biases: Tensor, mask: Tensor = mask) -> Tensor:
            there = other[: len(out)]
            change = torch.stack(out, dim=1) - there  # [b, writers, n, d_model]
            own = torch.einsum("buv,bund->bvnd", mask[:, : len(out), readers], change)
            return own + there.sum(0) + biases

        logits, _ = graph.forward(pair.clean, clean[None].expand(len(mask), -1, -1), pair.row, incoming)
        found.append(pair.difference_at_row(logits).cpu().numpy())
        if heard is not None:
            heard(first + len(mask), len(kept))
    return np.concatenate(found)


def _pairs(checkpoint: AnyCheckpoint, prompts: PromptSet) -> list[PromptPair]:
    return [one.pair() for one in read_rows(checkpoint, prompts, paired=True)[0]]


def _embedding(graph: ModelGraph, run: Trace) -> Float[Tensor, "n d_model"]:
    return run.residual(f"{graph.stack.name}.0.pre").detach().float()

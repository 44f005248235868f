"""Cached texts of the page Generation: written once, then shown step by step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits, generation_settings

if TYPE_CHECKING:
    from vizformer.analysis import Kind
    from vizformer.analysis.cost import Multiplications
    from vizformer.components.payload import HeadsPayload
    from vizformer.components.player import Site, Steps
    from vizformer.generation import BeamTree, Hypothesis
    from vizformer.model import Trace
    from vizformer.text import Token, Tokenizer

CANDIDATES = 10  # a step; more cannot be seen at a glance
LIMIT_BYTES = 2_000_000  # of attention maps that go to the browser at once


@dataclass(frozen=True)
class Text:
    """A generated text.

    Attributes:
        source: what the encoder reads; empty where there is none.
        tokens: what the decoder's sequence began with, and the new ones.
        start: how many it began with.
        steps: what each new one was chosen from.
        trace: one forward over everything but the last token, which no forward has read.
        read: the whole text, decoded.
        cached, uncached: multiplications of every step with the KV cache and without it.
        cache_bytes: after every step.
        rolling_bytes: of a cache that forgets what sliding windows see no more.
        memory_bytes: what of it belongs to the source, and does not grow.
    """

    source: "tuple[Token, ...]"
    tokens: "tuple[Token, ...]"
    start: int
    steps: "Steps"
    trace: "Trace"
    read: str
    cached: "list[Multiplications]"
    uncached: "list[Multiplications]"
    cache_bytes: list[int]
    rolling_bytes: list[int]
    memory_bytes: int

    @property
    def sites(self) -> "tuple[Site, ...]":
        return ("decoder", "cross") if self.source else ("decoder",)


@cached
def text(subject: Subject, settings: str, branch: str) -> Text:
    """The text that is written from the subject's, with `generation_settings.Settings` and tokens taken by hand."""
    from vizformer.analysis.cost import cache_bytes, generation_costs, rolling_cache_bytes
    from vizformer.components.player import read_branch

    loaded, edit = model_cache.checkpoint(subject.model), edits.edit(subject.edited)
    chosen = generation_settings.read(settings) or generation_settings.Settings()
    source, beginning = loaded.opening(subject.text, subject.target)
    instead = {one.step: one.id for one in read_branch(branch) or ()}
    ids: list[int] = []
    found = _Found()
    for step in loaded.stream(
        subject.text, target=subject.target, sampling=chosen.sampling, max_new=chosen.new, instead=instead, edit=edit
    ):
        ids.append(step.id)
        probabilities, filtered, cut = (part.cpu().numpy() for part in (step.probabilities, step.filtered, step.cut))
        found.add(step.id, probabilities, filtered, cut, step.by_hand)
        end = step.end
    start, config = [token.id for token in beginning], loaded.model.config
    every = [*start, *ids]
    if loaded.model.encoder is None:
        trace = loaded.trace(ids=every[:-1], edit=edit)
    else:
        trace = loaded.trace(ids=[token.id for token in source], target_ids=every[:-1], edit=edit)
    n, memory = len(ids), len(source)
    return Text(
        source=source,
        tokens=(*beginning, *loaded.tokenizer.tokens(ids)),
        start=len(start),
        steps=found.steps(_names(loaded.tokenizer, found.seen), config.vocab_size, str(end)),
        trace=trace,
        read=loaded.tokenizer.decode(every).strip(),
        cached=generation_costs(config, len(start), n, memory, cached=True),
        uncached=generation_costs(config, len(start), n, memory, cached=False),
        cache_bytes=[cache_bytes(config, len(start) + step, memory) for step in range(n)],
        rolling_bytes=[rolling_cache_bytes(config, len(start) + step, memory) for step in range(n)],
        memory_bytes=cache_bytes(config, 0, memory),
    )


@cached
def heads(subject: Subject, settings: str, branch: str, kind: "Kind", layer: int) -> "HeadsPayload":
    """The heads of one kind for the player: all of them where they fit, else those of one layer."""
    from vizformer.analysis import head_maps
    from vizformer.components.payload import fits, pack_heads, pack_layer

    maps = head_maps(text(subject, settings, branch).trace, kind)
    if fits(maps.weights.shape, scored=False, limit=LIMIT_BYTES):
        return pack_heads(maps.weights, None, maps.reasons)
    layer = min(layer, len(maps.weights) - 1)
    return pack_layer(maps.weights[layer], maps.reasons[layer], layer=layer, layers=len(maps.weights))


@dataclass(frozen=True)
class Beam:
    """A beam search: its tree, the texts of the ids in it, and what it found, best first."""

    tree: "BeamTree"
    names: dict[int, str]
    found: "list[tuple[str, Hypothesis]]"


@cached
def beam(subject: Subject, settings: str) -> Beam:
    """What beam search makes of the subject's text."""
    from vizformer.generation import BeamTree

    loaded, tree = model_cache.checkpoint(subject.model), BeamTree()
    chosen = generation_settings.read(settings) or generation_settings.Settings()
    found = loaded.beam(
        subject.text,
        target=subject.target,
        width=chosen.width,
        alpha=chosen.alpha,
        max_new=min(chosen.new, generation_settings.MOST_IN_A_BEAM),
        tree=tree,
    )
    return Beam(tree, _names(loaded.tokenizer, sorted({node.id for node in tree.nodes})), found)


def _names(tokenizer: "Tokenizer", ids: list[int]) -> dict[int, str]:
    """Texts of ids; a table of embeddings may have more rows than there are tokens."""
    known = tokenizer.tokens([id for id in ids if id < tokenizer.vocab_size])
    return {**{id: f"#{id}" for id in ids}, **{token.id: token.text for token in known}}


class _Found:
    """Gathers the candidates of the steps: the distributions of a hundred tokens of GPT-2 would be 40 MB."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.rows: list[tuple[np.ndarray, ...]] = []
        self.kept: list[int] = []
        self.by_hand: list[bool] = []

    def add(self, id: int, before: np.ndarray, after: np.ndarray, cut: np.ndarray, by_hand: bool) -> None:
        best = np.argsort(-before, kind="stable")[:CANDIDATES]
        if id not in best:
            best[-1] = id
        self.ids.append(id)
        self.rows.append((best, before[best], after[best], cut[best]))
        self.kept.append(int((cut == 0).sum()))
        self.by_hand.append(by_hand)

    @property
    def seen(self) -> list[int]:
        return sorted({int(id) for row in self.rows for id in row[0]})

    def steps(self, names: dict[int, str], vocab_size: int, end: str) -> "Steps":
        from vizformer.components.player import Steps

        candidates, before, after, cut = (np.stack(column) for column in zip(*self.rows, strict=True))
        return Steps(
            ids=self.ids,
            candidates=candidates,
            names=names,
            before=before,
            after=after,
            cut=cut,
            kept=self.kept,
            by_hand=self.by_hand,
            vocab_size=vocab_size,
            end=end,
        )

"""Small models with a circuit that was built by hand: which edges an answer needs is known, and methods are held against it.

Each is a decoder of attention alone without norms: a row of the stream has numbers of its own for every position and every
token, and areas into which heads write.  A head is a sum of products of what it reads of the query's row and of the key's
row, and what it reads of the key's row it writes into an area.  Beside the heads that work stand heads of random weights.

    induction            a previous-token head tells a head where the last token was followed (Elhage et al. 2021)
    duplicate            a head looks for an earlier token like its own (Wang et al. 2022)
    s_inhibition         the duplicate is found, the mover is told not to look at it, and says the other name (the same)
    copy_suppression     a head looks for what is about to be said, and takes part of it back (McDougall et al. 2023)
    negative_induction   beside the induction head stands one that writes against it (the same; Olsson et al. 2022)
    chain                three previous-token heads hand a token on, to be said three positions later

A circuit says which pairs of prompts differ only by what it carries, so that the other edges of its heads carry nothing: a
query that is made of positions is the same in both prompts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from recipes.handmade_models import (
    LETTERS,
    NOISE,
    QUIET,
    START,
    _attention,
    _id,
    _made,
    _of_head,
    _tokenizer,
    _unembedding,
)
from vizformer.analysis.causes.edge_attribution import Edge
from vizformer.analysis.causes.prompt_sets import PromptRow, PromptSet
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Transformer

POSITIONS, HEADS = 16, 4
SHARP = 8.0
"""The score of the key that a head looks for, above all others: soft enough that gradients along the way see it."""
LOUD = 8.0
SYMBOLS = LETTERS[:12] + ">+-"


@dataclass(frozen=True)
class Planted:
    """A model, prompts, and what is known.

    Attributes:
        known: the edges that carry what differs, each with the sign of what it does for the answer.
    """

    checkpoint: Checkpoint
    prompts: PromptSet
    known: dict[Edge, int]


@dataclass
class _Plan:
    """A model that is being written: names of areas, "token", "position", and those that heads write into."""

    layers: int
    areas: tuple[str, ...]
    working: dict[tuple[int, int], int] = field(default_factory=dict)  # head -> numbers of q and k that are used

    def __post_init__(self) -> None:
        self.tokenizer = _tokenizer(SYMBOLS)
        self.n = self.tokenizer.vocab_size
        sizes = {"position": POSITIONS} | dict.fromkeys(("token", *self.areas, "said"), self.n)
        self.at, width = dict[str, slice](), 0
        for name, size in sizes.items():
            self.at[name] = slice(width, width + size)
            width += size
        config = ModelConfig(
            vocab_size=self.n,
            d_model=width,
            n_heads=HEADS,
            head_dim=POSITIONS + 2 * self.n,
            d_ff=1,
            n_decoder_layers=self.layers,
            max_positions=POSITIONS,
            positions="learned",
            attention_scale=1.0,
            norm_order="none",
            bias=False,
            tied_unembedding=False,
            dropout=0.0,
            bos_id=0,
        )
        self.model = Transformer(config).requires_grad_(False)
        for parameter in self.model.parameters():
            parameter.zero_()
        self.model.embedding.weight[:, self.at["token"]] = torch.eye(self.n)
        assert self.model.position_embedding is not None
        self.model.position_embedding.weight[:, self.at["position"]] = torch.eye(POSITIONS)
        generator = torch.Generator().manual_seed(0)
        for attention in _attention(self.model):
            for name, deviation in (("W_Q", NOISE), ("W_K", NOISE), ("W_V", NOISE), ("W_O", QUIET)):
                weight = getattr(attention, name).weight
                weight.copy_(torch.randn(weight.shape, generator=generator) * deviation)
        _unembedding(self.model)[:, self.at["said"]] = LOUD * torch.eye(self.n)

    def looks(self, place: tuple[int, int], query: tuple[str, Tensor], key: tuple[str, Tensor]) -> None:
        """Adds (x_query Q) . (x_key K) to the scores of a head; the first time, its random weights are taken out."""
        attention = _attention(self.model)[place[0]]
        if place not in self.working:
            for name in ("W_Q", "W_K", "W_V", "W_O"):
                _of_head(attention, place[1], name).zero_()
        first = self.working.get(place, 0)
        self.working[place] = first + query[1].shape[1]
        for name, (area, matrix) in (("W_Q", query), ("W_K", key)):
            _of_head(attention, place[1], name)[self.at[area], first : first + matrix.shape[1]] = matrix

    def moves(self, place: tuple[int, int], read: str, written: str, matrix: Tensor | None = None) -> None:
        """What a head takes from an area of the key's row to an area of the query's row."""
        attention, ones = _attention(self.model)[place[0]], torch.eye(self.n)
        _of_head(attention, place[1], "W_V")[self.at[read], : self.n] = ones
        _of_head(attention, place[1], "W_O")[: self.n, self.at[written]] = ones if matrix is None else matrix

    def previous(self, place: tuple[int, int], read: str, written: str) -> None:
        """A previous-token head."""
        back = torch.eye(POSITIONS).roll(1, dims=1).triu()
        self.looks(place, ("position", 2 * SHARP * torch.eye(POSITIONS)), ("position", back))
        self.moves(place, read, written)

    def only(self, *symbols: str, scale: float = 1.0) -> Tensor:
        """One number of a row of tokens: `scale` for these, 0 for others."""
        found = torch.zeros(self.n, 1)
        found[[_id(self.tokenizer, symbol) for symbol in symbols]] = scale
        return found

    def done(self, name: str, rows: Sequence[PromptRow], known: dict[Edge, int]) -> Planted:
        return Planted(_made(name, self.model, self.tokenizer), PromptSet(name, tuple(rows)), known)


def head(layer: int, number: int) -> str:
    return f"decoder.{layer}.self.{number}"


def _along(*heads: tuple[int, int, str], sign: int = 1) -> dict[Edge, int]:
    """The edges of a way from the embedding through heads, each into its q, k or v, to the logits."""
    writers = ["embedding", *(head(layer, number) for layer, number, _ in heads)]
    readers = [*(f"{head(layer, number)}.{part}" for layer, number, part in heads), "logits"]
    return {Edge(writer, reader): sign for writer, reader in zip(writers, readers, strict=True)}


def _letters(plan: _Plan) -> Tensor:
    found = torch.eye(plan.n)
    found[_id(plan.tokenizer, START)] = 0
    return found


def _induction_head(plan: _Plan, place: tuple[int, int], matrix: Tensor | None = None) -> None:
    ones = torch.eye(plan.n)
    plan.looks(place, ("token", 2 * SHARP * ones), ("before", _letters(plan)))
    plan.moves(place, "token", "said", matrix)


_SWAPPED = [
    PromptRow(" ".join((a, b, c, d, a)), " ".join((c, b, a, d, a)), b, d)
    for a, b, c, d in ("abcd", "bdca", "cfeg", "hbak", "edcb", "gahf")
]
"""The letters before the two candidates are exchanged: where the last letter stood before is all that differs."""


def induction(negative: bool = False) -> Planted:
    plan = _Plan(2, ("before",))
    plan.previous((0, 1), "token", "before")
    _induction_head(plan, (1, 2))
    known = _along((0, 1, "v"), (1, 2, "k"))
    if negative:
        _induction_head(plan, (1, 0), -0.5 * torch.eye(plan.n))
        known = _along((0, 1, "v"), (1, 0, "k"), sign=-1) | known  # what both need is for the answer
    return plan.done("negative_induction" if negative else "induction", _SWAPPED, known)


def negative_induction() -> Planted:
    return induction(negative=True)


def _looks_for_its_own(plan: _Plan, place: tuple[int, int]) -> None:
    """At an earlier token like its own, not at itself, else at the start mark."""
    ones, here = torch.eye(plan.n), torch.eye(POSITIONS)
    plan.looks(place, ("token", 2 * SHARP * ones), ("token", _letters(plan)))
    plan.looks(place, ("position", -2 * SHARP * here), ("position", here))
    plan.looks(place, ("position", torch.full((POSITIONS, 1), SHARP)), ("token", plan.only(START)))


def duplicate() -> Planted:
    plan = _Plan(1, ())
    _looks_for_its_own(plan, (0, 3))
    says = torch.zeros(plan.n, plan.n)
    says[:, _id(plan.tokenizer, "+")] = 1.0
    says[_id(plan.tokenizer, START)] = 0.0
    says[_id(plan.tokenizer, START), _id(plan.tokenizer, "-")] = 1.0
    plan.moves((0, 3), "token", "said", says)
    rows = [
        PromptRow(" ".join((a, b, c, a)), " ".join((d, b, c, a)), "+", "-")
        for a, b, c, d in ("abcd", "befh", "cahk", "dghe")
    ]
    return plan.done("duplicate", rows, _along((0, 3, "k")))


def s_inhibition() -> Planted:
    plan = _Plan(3, ("twice", "avoided"))
    ones, letters = torch.eye(plan.n), LETTERS[:12]
    _looks_for_its_own(plan, (0, 2))
    plan.moves((0, 2), "token", "twice", _letters(plan))
    third = torch.zeros(POSITIONS, 1)
    third[3] = 1.0
    plan.looks((1, 1), ("token", plan.only(">", scale=2 * SHARP)), ("position", third))
    plan.moves((1, 1), "twice", "avoided")
    names = torch.zeros(POSITIONS, 1)
    names[1:3] = 1.0
    plan.looks((2, 0), ("token", plan.only(">", scale=2 * SHARP)), ("position", names))
    plan.looks((2, 0), ("avoided", -2 * SHARP * ones), ("token", ones))
    plan.moves((2, 0), "token", "said")
    rows = [
        PromptRow(" ".join((a, b, b, ">")), " ".join((a, b, a, ">")), a, b)
        for a, b in (("a", "b"), ("b", "c"), ("d", "a"), (letters[4], letters[9]), ("k", "h"))
    ]
    return plan.done("s_inhibition", rows, _along((0, 2, "q"), (1, 1, "v"), (2, 0, "q")))


def copy_suppression() -> Planted:
    plan = _Plan(2, ())
    ones, first = torch.eye(plan.n), torch.zeros(POSITIONS, 1)
    first[1] = 1.0
    plan.looks((0, 0), ("token", plan.only(">", scale=2 * SHARP)), ("position", first))
    plan.moves((0, 0), "token", "said")
    plan.looks((1, 3), ("said", 2 * SHARP * ones), ("token", ones))
    plan.moves((1, 3), "token", "said", -0.5 * ones)
    rows = [
        PromptRow(" ".join((a, b, c, ">")), " ".join((b, a, c, ">")), a, b)
        for a, b, c in ("abc", "bcd", "dae", "ejk", "khf")
    ]
    against = [_along(*way, sign=-1) for way in ([(0, 0, "v"), (1, 3, "q")], [(1, 3, "k")], [(1, 3, "v")])]
    return plan.done("copy_suppression", rows, against[0] | against[1] | against[2] | _along((0, 0, "v")))


def chain() -> Planted:
    plan = _Plan(3, ("one_back", "two_back"))
    for layer, number, read, written in (
        (0, 3, "token", "one_back"),
        (1, 0, "one_back", "two_back"),
        (2, 2, "two_back", "said"),
    ):
        plan.previous((layer, number), read, written)
    rows = [
        PromptRow(" ".join((a, b, c, d, e)), " ".join((a, f, c, d, e)), b, f)
        for a, b, c, d, e, f in ("abcdef", "bcadhk", "hgfedc", "kabcdj")
    ]
    return plan.done("chain", rows, _along((0, 3, "v"), (1, 0, "v"), (2, 2, "v")))


PLANTED: dict[str, Callable[[], Planted]] = {
    made.__name__: made for made in (induction, duplicate, s_inhibition, copy_suppression, negative_induction, chain)
}

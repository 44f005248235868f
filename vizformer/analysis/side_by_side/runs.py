"""Two runs that can be compared: whose positions mean the same, and how many of them there are."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, kinds, n_layers, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace

DOMINANT, TIMES_EVEN = 0.25, 8
"""A dimension is dominant where it has more than this share of the squared length of most rows of both runs, and more than
so many times an even share.
"""
MOST_LEFT_OUT = 16  # dimensions


@dataclass(frozen=True)
class StreamCosines:
    """The cosines of the residual streams of two runs, at the layers and the leading positions that both have.

    Attributes:
        cosines: without the dominant dimensions, NaN where a row is 0.
        whole: with all dimensions.
        left_out: the dominant dimensions of each point.
    """

    cosines: Float[ndarray, "points positions"]
    whole: Float[ndarray, "points positions"]
    left_out: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TwoRuns:
    """The traces of two models, or of one model on two texts; `two_runs` makes them."""

    first: AnyCheckpoint
    trace: Trace
    second: AnyCheckpoint
    other: Trace

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention, which both have."""
        return kinds(self.trace)

    def shape(self, kind: Kind) -> tuple[int, int]:
        """The layers that both models have, and the heads of those with most of them; nothing says that heads of the same
        number correspond."""
        (layers, heads), (other_layers, other_heads) = (_shape(trace, kind) for trace in (self.trace, self.other))
        return min(layers, other_layers), min(heads, other_heads)

    def whole_shape(self, kind: Kind) -> bool:
        """Whether both models have equally many layers and heads."""
        return _shape(self.trace, kind) == _shape(self.other, kind)

    def positions(self, stack: str) -> int:
        """How many leading positions of a stack both runs have."""
        return min(len(self.trace.tokens[stack]), len(self.other.tokens[stack]))

    def of_equal_length(self, kind: Kind) -> bool:
        """Whether the maps of a kind of attention have the same number of rows and columns."""
        one, two = (_size(trace[site_name(kind, 0)]) for trace in (self.trace, self.other))
        return one == two

    def rows_and_keys(self, kind: Kind) -> tuple[int, int]:
        """How many leading rows and keys of the maps of a kind of attention can be compared.

        All of them where the texts have equally many tokens.  Else the first min(n, n') rows, where a mask keeps them from
        every key that only one of the runs has, as the causal mask does.

        Raises:
            TraceError: a row sees keys that the other run does not have.
        """
        one, two = (_size(trace[site_name(kind, 0)]) for trace in (self.trace, self.other))
        if one == two:
            return one
        rows, keys = min(one[0], two[0]), min(one[1], two[1])
        for trace in (self.trace, self.other):
            for layer in range(n_layers(trace, kind)):
                record = trace[site_name(kind, layer)]
                beyond = record.of_queries(0, rows)
                # heads that share a mask need not be looked at one by one
                masks = 1 if record.reason_map is None else len(record.reason_map)
                reasons = (beyond.reason(head)[:, keys:] for head in range(masks))
                if any(bool((one == 0).any()) for one in reasons):
                    raise TraceError(
                        "The two texts have {first} and {second} tokens, and here every row looks at all of them: the "
                        "maps have no cells in common. Make the texts equally long.",
                        first=one[1],
                        second=two[1],
                    )
        return rows, keys


def _shape(trace: Trace, kind: Kind) -> tuple[int, int]:
    layers = n_layers(trace, kind)
    return layers, max(trace[site_name(kind, layer)].n_heads for layer in range(layers))


def two_runs(first: AnyCheckpoint, trace: Trace, second: AnyCheckpoint, other: Trace) -> TwoRuns:
    """Two runs to be compared position by position.

    Raises:
        TraceError: models with other stacks; models with other tokenizers that read other token ids here.
    """
    if set(trace.tokens) != set(other.tokens) or kinds(trace) != kinds(other):
        raise TraceError(
            "{first} is {one} and {second} is {two}: they have no stack that does the same. Choose two models of one "
            "architecture.",
            first=first.name,
            one=first.shape.architecture,
            second=second.name,
            two=second.shape.architecture,
        )
    for stack, tokens in trace.tokens.items():
        ids, others = ([token.id for token in sequence] for sequence in (tokens, other.tokens[stack]))
        if ids == others or has_same_tokenizers(first, second):
            continue
        at = next((i for i, (a, b) in enumerate(zip(ids, others, strict=False)) if a != b), min(len(ids), len(others)))
        a, b = (
            f"“{sequence[at].text}” ({sequence[at].id})" if at < len(sequence) else "–"
            for sequence in (tokens, other.tokens[stack])
        )
        raise TraceError(
            "The tokenizers of {first} and {second} differ, and they read this as other token ids: {n} and {m} of "
            "them, at position {at} {a} and {b}. Their rows and columns stand for other pieces of text, so that "
            "nothing can be compared. Choose a model with the same tokenizer.",
            first=first.name,
            second=second.name,
            n=len(ids),
            m=len(others),
            at=at,
            a=a,
            b=b,
        )
    return TwoRuns(first, trace, second, other)


def _size(record: AttentionRecord) -> tuple[int, int]:
    return record.q.shape[1], record.k.shape[1]


def has_same_tokenizers(first: AnyCheckpoint, second: AnyCheckpoint) -> bool:
    """Whether both models cut every text into the same ids."""
    if first is second:
        return True
    return all(
        one is two or (one.to_json() == two.to_json() and one.target_json == two.target_json)
        for one, two in (
            (first.tokenizer_of("encoder"), second.tokenizer_of("encoder")),
            (first.tokenizer_of("decoder"), second.tokenizer_of("decoder")),
        )
    )


# How the residual streams of two runs point: their cosine, layer by layer and position by position.
@torch.inference_mode()
def stream_cosines(runs: TwoRuns, stack: str) -> StreamCosines:
    """cos = x . y / (|x| |y|) of the rows x and y of both runs: of the embeddings, then of what every layer ends with.

    A few dimensions of a trained model may be so large in every row that any two rows point the same way; they are left
    out, the largest first, as long as there is one (Timkey & van Schijndel 2021, "All Bark and No Bite: Rogue Dimensions in
    Transformer Language Models Obscure Representational Quality").

    1 where they point the same way, 0 where they have nothing in common, NaN where one of them is 0.  The axes of two
    models that were not made from one another are not the same, so that their cosine says little; that of two steps of
    one training, or of a model before and after fine-tuning, says where they part.

    Raises:
        TraceError: no such stack; streams of other widths.
    """
    if stack not in runs.trace.tokens:
        raise TraceError("These models have no {stack}.", stack=stack)
    widths = [trace.residual(f"{stack}.0.pre").shape[-1] for trace in (runs.trace, runs.other)]
    if widths[0] != widths[1]:
        raise TraceError(
            "The residual streams have {first} and {second} numbers: there is no angle between them.",
            first=widths[0],
            second=widths[1],
        )
    n = runs.positions(stack)
    names = [f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(_layers(runs, stack)))]
    cosines, whole, left_out = [], [], []
    for name in names:
        x, y = (trace.residual(name)[:n].double() for trace in (runs.trace, runs.other))
        left_out.append(_dominant(torch.cat([x, y])))
        kept = torch.ones(widths[0], dtype=x.dtype, device=x.device)
        kept[list(left_out[-1])] = 0
        cosines.append(_cosine(x * kept, y * kept))
        whole.append(_cosine(x, y))
    return StreamCosines(torch.stack(cosines).cpu().numpy(), torch.stack(whole).cpu().numpy(), tuple(left_out))


def _cosine(x: Float[Tensor, "n d_model"], y: Float[Tensor, "n d_model"]) -> Float[Tensor, " n"]:
    lengths = x.norm(dim=-1) * y.norm(dim=-1)
    return torch.where(lengths > 0, (x * y).sum(-1) / lengths, torch.nan).clamp(-1.0, 1.0)


def _dominant(rows: Float[Tensor, "n d_model"]) -> tuple[int, ...]:
    """The dimensions that are dominant, one after the other, each among those that are left."""
    squares, found = rows.square(), list[int]()
    share = max(DOMINANT, TIMES_EVEN / rows.shape[1])
    while len(found) < MOST_LEFT_OUT:
        often = (squares > share * squares.sum(-1, keepdim=True)).double().mean(0)
        largest = int(often.argmax())
        if often[largest] <= 0.5:
            break
        found.append(largest)
        squares[:, largest] = 0
    return tuple(found)


def _layers(runs: TwoRuns, stack: str) -> int:
    """The layers that both models have."""
    counts = (
        sum(name.startswith(f"{stack}.") and name.endswith(".post") for name in trace.residuals)
        for trace in (runs.trace, runs.other)
    )
    return min(counts)

"""Two runs that can be compared: whose positions mean the same, and how many of them there are."""

from dataclasses import dataclass

from vizformer.analysis.heads.maps import Kind, kinds, n_layers, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace


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

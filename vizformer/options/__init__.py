"""The options of a Transformer, each at the station of the forward where it counts: one module each.

An option is added when a model uses it and a test holds it (docs/decisions.md), so everything listed here works.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vizformer.messages import N_, Message
from vizformer.options.attention import AttentionOptions
from vizformer.options.common import CommonOptions
from vizformer.options.embedding import EmbeddingOptions
from vizformer.options.feedforward import FeedForwardOptions
from vizformer.options.kinds import Kind, read_kinds
from vizformer.options.marks import MarkOptions
from vizformer.options.norms import NormOptions
from vizformer.options.positions import PositionOptions
from vizformer.options.prediction import PredictionOptions

STATIONS: tuple[type[CommonOptions], ...] = (
    AttentionOptions,
    FeedForwardOptions,
    NormOptions,
    EmbeddingOptions,
    PositionOptions,
    PredictionOptions,
    MarkOptions,
)


@dataclass(frozen=True, kw_only=True)
class Options(
    MarkOptions, PredictionOptions, FeedForwardOptions, NormOptions, EmbeddingOptions, AttentionOptions, PositionOptions
):
    """Everything that decides the shape and the arithmetic of a model: the options of all stations.

    This class has the rules between stations; the fields come in the order of the bases, the last one first.
    """

    @property
    def has_norms(self) -> bool:
        """Whether the model has any norm, of rows or of queries and keys."""
        return self.norm_order != "none" or self.final_norm or self.embedding_norm or self.qk_norm

    @property
    def kv_numbers(self) -> int:
        """Numbers that a cache keeps per token and layer: keys and values."""
        return 2 * self.kv_heads * self.d_head

    def rules(self) -> Iterator[Message]:
        if self.n_encoder_layers == self.n_decoder_layers == 0:
            yield N_("both stacks have 0 layers: give n_encoder_layers, n_decoder_layers or both")
        for station in STATIONS:
            yield from station.rules(self)
        yield from self._rules_between_stations()
        yield from self._refused_by(Kind.out_of_bounds)

    def wrong_types(self) -> Iterator[Message]:
        """The options whose values have another type than their kind, or are none of its choices."""
        return self._refused_by(Kind.wrong_type)

    def _refused_by(self, check: Callable[[Kind, str, object], Message | None]) -> Iterator[Message]:
        for name, kind in _KINDS.items():
            if (said := check(kind, name, getattr(self, name))) is not None:
                yield said

    def details(self) -> Iterator[Message]:
        for station in STATIONS:
            yield from station.details(self)

    def without_meaning(self) -> Iterator[str]:
        for station in STATIONS:
            yield from station.without_meaning(self)
        if not (self.embedding_norm or self.positions == "learned"):
            yield "stack_inputs"

    def _rules_between_stations(self) -> Iterator[Message]:
        if self.relative_bias and (self.architecture != "encoder-only" or self.positions != "learned"):
            yield N_("relative_bias=True: only an encoder alone has it, with positions='learned'; leave it out")


_KINDS = read_kinds(Options)

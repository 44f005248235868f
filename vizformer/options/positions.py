"""The station of positions: how a model tells where a token stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import AboveOne, Count, Positive

Positions = Literal["sinusoidal", "learned", "rope", "alibi", "relative", "none"]
Sinusoids = Literal["interleaved", "halves"]
RopeScaling = Literal["none", "linear", "llama3"]


@dataclass(frozen=True, kw_only=True)
class PositionOptions(CommonOptions):
    """What is added, turned or compared so that order matters.

    Attributes:
        positions: "sinusoidal" (Vaswani et al. 2017, 3.5); a "learned" table; "rope" turns queries and keys instead of
            adding something (Su et al. 2021); "alibi" takes a fixed slope times the distance off every score (Press,
            Smith & Lewis 2021); "relative" adds a learned number per head and bucket of distances, one table per stack
            (Raffel et al. 2019, "T5"); "none".
        sinusoids: how "sinusoidal" lays out its waves: "interleaved" sine, cosine, sine, ... (the paper) or in
            "halves", all sines before all cosines (the paper's own code; Marian).
        rope_theta: base of the wavelengths of "rope".
        rope_scaling: how "rope" was slowed down for texts longer than those of the first training: "none"; "linear"
            divides every angle by rope_factor (Chen et al. 2023, "Position Interpolation"); "llama3" only those of
            pairs that turn fewer than rope_low_turns times in rope_trained_positions, leaves those with more than
            rope_high_turns as they are, and mixes the two in between (Grattafiori et al. 2024, "The Llama 3 Herd of
            Models", and the code published with it).
        rope_factor, rope_low_turns, rope_high_turns, rope_trained_positions: see rope_scaling.
        relative_bias: the scores get the learned numbers of "relative" beside the vectors of positions="learned" (Song et
            al. 2020, "MPNet").
        relative_buckets: rows of each table of "relative"; half are for single distances, the others for ever longer
            stretches. An encoder splits them between keys before and keys behind the query.
        relative_max_distance: the last bucket of "relative" serves every distance from here on (and some before).
    """

    positions: Positions = "sinusoidal"
    sinusoids: Sinusoids = "interleaved"
    rope_theta: AboveOne = 10_000.0
    rope_scaling: RopeScaling = "none"
    rope_factor: Positive = 1.0
    rope_low_turns: Positive = 1.0
    rope_high_turns: float = 4.0
    rope_trained_positions: Count = 8192
    relative_bias: bool = False
    relative_buckets: int = 32
    relative_max_distance: int = 128

    @property
    def has_relative_bias(self) -> bool:
        """Whether a learned bias for the bucket of their distance is added to each score (T5, MPNet)."""
        return self.positions == "relative" or self.relative_bias

    def rules(self) -> Iterator[Message]:
        if self.positions == "sinusoidal" and self.d_model % 2:
            yield N_(
                "d_model={d_model} is odd: sinusoidal positions come in sine-cosine pairs, make it even",
                d_model=self.d_model,
            )
        yield from self._rules_of_rope()
        if self.relative_buckets < 4 or self.relative_buckets % 2:
            yield N_("relative_buckets={value}: must be even and at least 4", value=self.relative_buckets)
        if self.relative_max_distance <= self.relative_buckets // 2:
            yield N_(
                "relative_max_distance={value}: must be above half of relative_buckets, {half}",
                value=self.relative_max_distance,
                half=self.relative_buckets // 2,
            )

    def _rules_of_rope(self) -> Iterator[Message]:
        if self.positions == "rope" and self.n_heads >= 1 and self.d_head % 2:
            yield N_(
                "d_head={d_head} is odd: rotary positions turn pairs of numbers, make d_model / n_heads even",
                d_head=self.d_head,
            )
        if not self.rope_low_turns < self.rope_high_turns < float("inf"):
            yield N_(
                "rope_high_turns={high}: must be above rope_low_turns={low}",
                high=self.rope_high_turns,
                low=self.rope_low_turns,
            )

    def details(self) -> Iterator[Message]:
        if self.positions == "rope" and self.rope_scaling != "none":
            yield N_(
                "rotary positions slowed down for longer texts ({kind}, factor {factor})",
                kind=self.rope_scaling,
                factor=f"{self.rope_factor:g}",
            )
        if self.relative_bias:
            yield N_("scores get a learned number for the distance too, the same in all layers")
        if self.positions == "sinusoidal" and self.sinusoids == "halves":
            yield N_("all sines of the positions before all cosines")

    def without_meaning(self) -> Iterator[str]:
        if self.positions != "sinusoidal":
            yield "sinusoids"
        for name in PositionOptions.__annotations__:
            if name.startswith("rope_") and self.positions != "rope":
                yield name
        if not self.has_relative_bias:
            yield from ("relative_buckets", "relative_max_distance")
        if self.rope_scaling == "none":
            yield from ("rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions")

"""What a model is made from: options that fit together, what follows from them, and how they are written as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from vizformer.config_rules import broken_rules, wrong_types
from vizformer.errors import ConfigError
from vizformer.messages import N_
from vizformer.options import Options
from vizformer.presets import PRESETS


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Options):
    """Everything that decides the shape and the arithmetic of a model: `Options` that were checked.

    Raises:
        ConfigError: an option of another type or value than it may have, or options that contradict each other.
    """

    def __post_init__(self) -> None:
        if problems := wrong_types(self) or broken_rules(self):
            raise ConfigError(N_("This model cannot be built: {problems}.", problems=tuple(problems)))

    @property
    def input_vocab_size(self) -> int:
        """Number of ids that a text may consist of: those of the encoder, where they are another vocabulary's."""
        return self.vocab_size if self.source_vocab_size is None else self.source_vocab_size

    @property
    def d_embedding(self) -> int:
        """Width of the table of token embeddings: embedding_dim, or d_model."""
        return self.d_model if self.embedding_dim is None else self.embedding_dim

    @property
    def d_sum(self) -> int:
        """Width of the rows of tokens, positions and segments when they are added."""
        return self.d_model if self.embedding_projection == "tokens" else self.d_embedding

    @property
    def has_norms(self) -> bool:
        """Whether there is any norm of rows, queries or keys."""
        return self.norm_order != "none" or self.final_norm or self.embedding_norm or self.qk_norm

    @property
    def turned_dims(self) -> int:
        """How many numbers of a query or key "rope" turns: rope_dims, or all of them."""
        return self.d_head if self.rope_dims is None else self.rope_dims

    @property
    def has_c2p(self) -> bool:
        """Whether the scores compare the contents of queries with distances."""
        return self.disentangled in ("c2p", "both")

    @property
    def has_p2c(self) -> bool:
        """Whether they compare the contents of keys with distances."""
        return self.disentangled in ("p2c", "both")

    @property
    def windowed_layers(self) -> frozenset[int]:
        """The layers whose self-attention sees only the window."""
        if self.sliding_window is None:
            return frozenset()
        depth = self.n_encoder_layers + self.n_decoder_layers  # there is one stack
        return frozenset(range(depth) if self.sliding_layers is None else self.sliding_layers)

    def turns(self, layer: int) -> bool:
        """Whether the self-attention of this layer (of either stack) turns its queries and keys."""
        return self.positions == "rope" and (self.rope_layers is None or layer in self.rope_layers)

    def turns_locally(self, layer: int) -> bool:
        """Whether it does so by rope_local_theta."""
        return self.rope_local_layers is not None and layer in self.rope_local_layers

    def theta(self, layer: int) -> float:
        """The base by which it does so."""
        local = self.rope_local_theta if self.turns_locally(layer) else None
        return self.rope_theta if local is None else local

    def has_experts(self, layer: int) -> bool:
        """Whether the feed-forward of this layer (of either stack) is a mixture of experts."""
        return self.n_experts is not None and (self.expert_layers is None or layer in self.expert_layers)

    @property
    def expert_width(self) -> int:
        """Width of an expert's hidden layer: d_expert, or d_ff."""
        return self.d_ff if self.d_expert is None else self.d_expert

    @property
    def n_expert_layers(self) -> int:
        """How many layers have experts."""
        return sum(map(self.has_experts, range(self.n_encoder_layers))) + sum(
            map(self.has_experts, range(self.n_decoder_layers))
        )

    @property
    def active_d_ff(self) -> int:
        """Numbers of the hidden layers that a token goes through in one layer: d_ff or, where that has experts, those of the
        chosen ones and of the shared one together."""
        if self.n_experts is None:
            return self.d_ff
        return self.experts_per_token * self.expert_width + (self.d_shared_expert or 0)

    def network_parameters(self, width: int) -> int:
        """Parameters of one feed-forward network: 2 d width + width + d, or 3 d width (+ 2 width + d) with a gate."""
        matrices = 3 if self.feedforward == "gated" else 2
        return matrices * self.d_model * width + ((matrices - 1) * width + self.d_model if self.bias else 0)

    @property
    def idle_parameters(self) -> int:
        """Parameters of the experts that a token does not go through, in all layers together; 0 without experts."""
        idle = (self.n_experts or 0) - self.experts_per_token
        return self.n_expert_layers * idle * self.network_parameters(self.expert_width)

    def without_experts(self) -> "ModelConfig":
        """The same options with one feed-forward network of width d_ff in every layer."""
        return replace(self, n_experts=None, d_expert=None, d_shared_expert=None, expert_layers=None)

    def without_distances(self) -> "ModelConfig":
        """The same options with scores of the contents alone."""
        return replace(
            self,
            disentangled="none",
            disentangled_furthest=None,
            disentangled_norm=False,
            disentangled_shared=False,
        )

    @property
    def qkv_bias(self) -> bool:
        """Whether W_Q, W_K and W_V have biases."""
        return self.bias if self.attention_bias == "same" else self.attention_bias in ("all", "qkv")

    @property
    def out_bias(self) -> bool:
        """Whether W_O has a bias."""
        return self.bias if self.attention_bias == "same" else self.attention_bias == "all"

    @property
    def start_ids(self) -> tuple[int, ...]:
        """What a decoder behind an encoder begins with: decoder_start_id or bos_id, then forced_bos_id."""
        start = self.bos_id if self.decoder_start_id is None else self.decoder_start_id
        return tuple(id for id in (start, self.forced_bos_id) if id is not None)

    @property
    def embedding_factor(self) -> float:
        """What the token embeddings are multiplied by: sqrt(d_model) or 1, times embedding_scale."""
        return (math.sqrt(self.d_model) if self.scaled_embedding else 1.0) * self.embedding_scale

    def factor_of(self, stack: str) -> float:
        """The same of one stack: a decoder whose embeddings are normalised first takes them as they are."""
        return 1.0 if stack == "decoder" and self.decoder_positions_after_norm else self.embedding_factor

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "ModelConfig":
        """Builds a config from JSON; unknown names are refused rather than ignored."""
        known = {field.name for field in fields(cls)}
        required = {"vocab_size", "d_model", "n_heads", "d_ff"}
        if unknown := sorted(set(options) - known):
            raise ConfigError(
                N_(
                    "Unknown option {names}. Known options are: {known}.",
                    names=", ".join(map(repr, unknown)),
                    known=", ".join(sorted(known)),
                )
            )
        if missing := sorted(required - set(options)):
            raise ConfigError(N_("The model options lack {names}; add them.", names=", ".join(missing)))
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        return cls(**given)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """A model of the literature by name (a key of `PRESETS`, e.g. "gpt2-small"), with `changes` on top."""
        if name not in PRESETS:
            raise ConfigError(
                N_("There is no preset {name!r}; choose one of: {known}.", name=name, known=", ".join(PRESETS))
            )
        return cls(**{**PRESETS[name], **changes})

    def __str__(self) -> str:
        return json.dumps(self.to_dict())

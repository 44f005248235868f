"""The options that a model is made from, which must fit together, and their form as JSON."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from typing import Any

from vizformer.errors import ConfigError
from vizformer.options import Options
from vizformer.options.shape import ModelShape
from vizformer.presets import PRESETS

# Former options, each with the value at which it had no effect; older files still contain them.
_GONE: Mapping[str, Any] = {
    "n_experts": None,
    "experts_per_token": 2,
    "expert_weights": "renormalised",
    "router_bias": False,
    "router_scores": "softmax",
    "router_correction": False,
    "router_groups": 1,
    "router_groups_used": 1,
    "router_group_best": 2,
    "expert_scale": 1.0,
    "expert_inputs_weighed": False,
    "d_expert": None,
    "d_shared_expert": None,
    "shared_expert_gate": True,
    "expert_norms": False,
    "expert_layers": None,
    "qk_norm_layers": None,
    "gate_limit": None,
    "sinks": False,
    "attention_gate": False,
    "last_norm": True,
    "latent_dim": None,
    "latent_query_dim": None,
    "latent_value_dim": None,
    "state_layers": None,
    "state_rule": "delta",
    "state_key_heads": None,
    "state_value_heads": None,
    "state_key_dim": None,
    "state_value_dim": None,
    "state_kernel": 4,
    "state_bias": False,
    "state_step_least": None,
    "state_step_most": None,
    "delta_layers": None,
    "delta_key_heads": None,
    "delta_value_heads": None,
    "delta_key_dim": None,
    "delta_value_dim": None,
    "delta_kernel": 4,
    "value_norm": False,
    "kv_layers": None,
    "wide_layers": None,
    "wide_head_dim": None,
    "wide_kv_heads": None,
    "layer_input_dim": None,
    "layer_input_vocab": None,
    "shared_kv_d_ff": None,
    "gate_sparsity": None,
    "layer_scale": False,
    "n_streams": None,
    "stream_scale": True,
    "laurel_rank": None,
    "disentangled": "none",
    "disentangled_span": 256,
    "disentangled_furthest": None,
    "disentangled_norm": False,
    "disentangled_shared": False,
    "first_norm": True,
    "final_norm_stack": "each",
    "decoder_positions_after_norm": False,
    "relative_in_layers": False,
    "rope_whole_pairs": True,
    "rope_divisors": None,
    "rope_gain": 1.0,
    "qk_norm_over": "head",
    "residual_scale": 1.0,
    "embedding_scale": 1.0,
    "score_cap": None,
    "logit_cap": None,
    "norm_offset": False,
    "rope_layers": None,
    "rope_dims": None,
    "rope_local_theta": None,
    "rope_local_layers": None,
    "embedding_dim": None,
    "embedding_projection": "normed_sum",
}
# Former values of options that still exist.
_GONE_VALUES: Mapping[str, tuple[str, ...]] = {
    "rope_scaling": ("yarn", "longrope"),
    "residual": ("parallel",),
    "norm_order": ("output", "sandwich"),
    "head": ("projection",),
}


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Options):
    """Everything that decides the shape and the arithmetic of a model: `Options` that were checked.

    Raises:
        ConfigError: an option of another type or value than it may have, or options that contradict each other; all
            problems are listed at once.
    """

    def __post_init__(self) -> None:
        if problems := list(self.wrong_types()) or list(self.rules()):
            raise ConfigError("This model cannot be built: {problems}.", problems=tuple(problems))

    def unusual(self) -> dict[str, Any]:
        """The options that differ from their defaults, and those that have no default."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    @cached_property
    def shape(self) -> ModelShape:
        """The sizes of this model, and its marks."""
        encoder, decoder = ((self.n_heads,) * n for n in (self.n_encoder_layers, self.n_decoder_layers))
        return ModelShape(
            encoder_heads=encoder,
            decoder_heads=decoder,
            cross_heads=decoder if encoder else (),
            d_model=self.d_model,
            d_head=self.d_head,
            vocab_size=self.vocab_size,
            input_vocab_size=self.input_vocab_size,
            max_positions=self.max_positions,
            activation=self.activation,
            start_ids=self.start_ids,
            eos_id=self.eos_id,
            pad_id=self.pad_id,
            mask_id=self.mask_id,
            never_written=self.never_written,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "ModelConfig":
        """Builds a config from JSON; unknown names are refused rather than ignored.

        A former option is ignored if its value had no effect, and refused by name otherwise.
        """
        lost = sorted(name for name, nothing in _GONE.items() if options.get(name, nothing) != nothing)
        if lost := lost + [name for name, values in _GONE_VALUES.items() if options.get(name) in values]:
            raise ConfigError(
                "This version no longer has the options {names}, which this model needs. Open the folder that it was made "
                "from: its own code in `transformers` runs and is recorded. Or take the version of VizFormer that wrote it.",
                names=", ".join(f"{name}={options[name]!r}" for name in lost),
            )
        options = {name: value for name, value in options.items() if name not in _GONE}
        known = {field.name for field in fields(cls)}
        required = {field.name for field in fields(cls) if field.default is MISSING}
        if unknown := sorted(set(options) - known):
            raise ConfigError(
                "Unknown option {names}. Known options are: {known}.",
                names=", ".join(map(repr, unknown)),
                known=", ".join(sorted(known)),
            )
        if missing := sorted(required - set(options)):
            raise ConfigError("The model options lack {names}; add them.", names=", ".join(missing))
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        return cls(**given)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """A model of the literature by name (a key of `PRESETS`, e.g. "gpt2-small"), with `changes` on top."""
        if name not in PRESETS:
            raise ConfigError(
                "There is no preset {name!r}; choose one of: {known}.", name=name, known=", ".join(PRESETS)
            )
        return cls(**{**PRESETS[name], **changes})

    def __str__(self) -> str:
        """The options that differ from their defaults, as JSON. Options that are added later do not change this text."""
        return json.dumps(self.unusual(), sort_keys=True)

"""nanochat: norms that learn nothing, also of queries and keys; a squared ReLU; a soft cap of the logits.

Source: Karpathy 2025, "nanochat", and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE, OUT, attention_bias, cap, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import Made, norms_of
from vizformer.checkpoints.hugging_face.rotary import GAIN, table_of
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

LAYER = {**ATTENTION, **OUT, "mlp.fc1": ["feedforward.W_in"], "mlp.fc2": ["feedforward.W_out"]}


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names)
    if options.pop(GAIN, 1.0) != 1:
        fields.refuse(
            table_of(fields)[0], "queries and keys are normalised after they are turned: yarn multiplies nothing there"
        )
    fields.assume("the norms of this family learn nothing: those of the model here multiply by 1")
    return {
        **options,
        **attention_bias("all")(fields, options),
        "feedforward": "plain",
        "embedding_norm": True,
        "qk_norm": True,
        "logit_cap": cap(fields, "final_logit_softcapping"),
    }, has_head


def _weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor.

    Pairs turn backwards there, (x_m, x_(m+d/2)) to (x_m cos + x_(m+d/2) sin, x_(m+d/2) cos - x_m sin): ours, where the
    halves of each head change places in queries and keys alike.  Turning leaves the mean square as it is, so that the norm
    of a turned query is the turned norm of it.
    """
    heads = {"q_proj": config.n_heads, "k_proj": config.kv_heads}
    return [
        replace(part, order=partial(_halves_changed, heads[name], config.d_head))
        if (name := part.source.split(".")[-2]) in heads
        else part
        for part in tensors(config, LAYER)
    ]


def _halves_changed(heads: int, d_head: int) -> Tensor:
    """The rows of W_Q or W_K, the second half of each head first."""
    one = torch.arange(d_head).roll(d_head // 2)  # [d_head]
    return (torch.arange(heads)[:, None] * d_head + one).flatten()  # [heads * d_head]


def _made(config: ModelConfig) -> Made:
    """RMSNorm(x) = x / sqrt(mean(x^2) + eps) * 1."""
    at = [f"decoder.layers.{layer}.self_attention.{x}_norm" for layer in range(config.n_decoder_layers) for x in "qk"]
    of_heads: Made = dict.fromkeys((f"{name}.weight" for name in at), partial(torch.ones, config.d_head))
    others = [f"{name}.weight" for name in ("embedding_norm", *norms_of(config))]
    return {**of_heads, **dict.fromkeys(others, partial(torch.ones, config.d_model))}


FAMILIES: tuple[Family, ...] = (relative(LIKE, "nanochat", "nanochat", _config, weights=_weights, made=_made),)

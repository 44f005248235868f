"""StableLM (3B, Zephyr 3B, 2 1.6B): LLaMA's layers with LayerNorm, and rotary positions for a part of each head.

Source: Tow et al. 2023, "StableLM 3B 4E1T"; Bellagente et al. 2024, "Stable LM 2 1.6B Technical Report", section 2.
"""

from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, FEEDFORWARD, LIKE, NORMS, OUT, decoder, tensors
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

ONE = {"input_layernorm": ["self_norm", "feedforward_norm"]}


def _own(fields: Fields, found: Options) -> Options:
    fields.only("qk_layernorm", False)  # one norm per head
    fields.only("head_dim", None, found["d_model"] // found["n_heads"])
    parallel = fields.flag("use_parallel_residual")
    if parallel:
        fields.assume(ONE_NORM)
    return {
        "norm": "layer_norm",
        "residual": "parallel" if parallel else "sequential",
        "bias": False,
        "attention_bias": "qkv" if fields.flag("use_qkv_bias") else "none",
    }


def weights(config: ModelConfig) -> list[Part]:
    norms = ONE if config.residual == "parallel" else NORMS
    return tensors(config, {**norms, **ATTENTION, **OUT, **FEEDFORWARD})


FAMILIES: tuple[Family, ...] = (
    relative(LIKE, "StableLM", "stablelm", partial(decoder, eps="layer_norm_eps", part=True), _own, weights=weights),
)

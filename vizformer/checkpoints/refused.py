"""Relatives of families that open, which do not: the fields that keep them from it."""

from collections.abc import Mapping

from vizformer.messages import N_, Message

_GEMMA_3 = N_("rope_local_base_freq (another rope_theta in the layers with a sliding window) and four norms per layer")
_EXPERTS = N_("num_experts: several feed-forward networks per layer, of which each token goes through a few")
BECAUSE: Mapping[str, Message] = {
    "gemma2": N_("attn_logit_softcapping and final_logit_softcapping (scores and logits bent by tanh), "
                 "and four norms per layer"),
    "gemma3_text": _GEMMA_3,
    "gemma3": _GEMMA_3,
    "mixtral": N_("num_local_experts: several feed-forward networks per layer, of which each token goes through a few"),
    "qwen2_moe": _EXPERTS,
    "qwen3_moe": _EXPERTS,
    "gptj": N_("rotary_dim with pairs of neighbouring numbers, and one norm for attention and feed-forward"),
    "codegen": N_("rotary_dim with pairs of neighbouring numbers, and one norm for attention and feed-forward"),
}  # fmt: skip

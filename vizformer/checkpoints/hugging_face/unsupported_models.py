"""Relatives of the supported families that are not supported: the fields that are the reason."""

from collections.abc import Mapping

from vizformer.messages import N_, Message

BECAUSE: Mapping[str, Message] = {
    "phimoe": N_("router_jitter_noise: its router weighs two experts one after the other, each against those near it"),
    "granitemoeshared": N_("shared_intermediate_size: a shared expert that is added to the others as it is"),
    "jetmoe": N_("num_local_experts: its attention has experts as well"),
    "ernie4_5_moe": N_("a bias of the router that chooses the experts and does not weigh them"),
    "switch_transformers": N_("num_experts: each expert takes so many tokens at most, and leaves out the others"),
    "nllb-moe": N_("num_experts: each expert takes so many tokens at most, and leaves out the others"),
    "internlm2": N_("queries, keys and values in one tensor, and code of its own (auto_map)"),
    "deepseek_v2": N_("kv_lora_rank: keys and values are made of a short vector per token, and there are experts"),
    "deepseek_v3": N_("kv_lora_rank: keys and values are made of a short vector per token, and there are experts"),
    "mamba": N_("state_size: it has no attention"),
    "xlm": N_("learned embeddings of the language beside the positions"),
    "xlnet": N_("attention over a memory of earlier texts, with scores of its own for distances"),
    "umt5": N_("a table of relative positions in every layer"),
    "longt5": N_("encoder_attention_type: queries look at a neighbourhood and at summaries of blocks"),
    "led": N_("attention_window: queries look at a neighbourhood only"),
    "whisper": N_("it reads sound"),
    "vit": N_("it reads images"),
    "imagegpt": N_("it reads images, and its norms do not subtract the mean"),
    "clip": N_("it reads images beside texts"),
    "fsmt": N_("a vocabulary for each language, as two files, and static positions counted from the padding's"),
}

# Those whose tensors may have the names and shapes of GPT-2's and mean something else: never opened by names alone.
SAME_NAMES = ("imagegpt",)

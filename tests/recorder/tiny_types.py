"""Tiny models of `transformers` with random weights, the inputs that they take, and how many attention calls they make."""

from typing import Any

import torch
from torch import Tensor, nn

V, N = 61, 9


def ids(n: int = N, batch: int = 1) -> Tensor:
    return torch.randint(5, V - 1, (batch, n), generator=torch.Generator().manual_seed(3))


_LLAMA = dict(
    vocab_size=V,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=64,
)
_BERT = dict(
    vocab_size=V,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
)
_BART = dict(
    vocab_size=V,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    max_position_embeddings=64,
    pad_token_id=1,
    eos_token_id=2,
    bos_token_id=0,
    decoder_start_token_id=2,
    forced_eos_token_id=2,
)
_GPT = dict(vocab_size=V, n_embd=32, n_layer=2, n_head=4, n_positions=64)

TYPES: dict[str, tuple[str, dict[str, Any], int]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT, 2),
    "gptj": ("GPTJForCausalLM", {**_GPT, "rotary_dim": 4}, 2),
    "llama": ("LlamaForCausalLM", _LLAMA, 2),
    "qwen2": ("Qwen2ForCausalLM", _LLAMA, 2),
    "mistral": ("MistralForCausalLM", {**_LLAMA, "sliding_window": 4}, 2),
    "gemma2": ("Gemma2ForCausalLM", {**_LLAMA, "sliding_window": 4, "attn_logit_softcapping": 1.0}, 2),
    "bert": ("BertForMaskedLM", _BERT, 2),
    "roberta": ("RobertaForMaskedLM", _BERT, 2),
    "distilbert": (
        "DistilBertForMaskedLM",
        dict(vocab_size=V, dim=32, hidden_dim=40, n_layers=2, n_heads=4, max_position_embeddings=64),
        2,
    ),
    "bart": ("BartForConditionalGeneration", _BART, 6),
    "marian": ("MarianMTModel", _BART, 6),
    "t5": (
        "T5ForConditionalGeneration",
        dict(vocab_size=V, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0),
        6,
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", _BERT, 2),
    "falcon": ("FalconForCausalLM", _BERT, 2),
    "phi": ("PhiForCausalLM", _BERT, 2),
    "bloom": ("BloomForCausalLM", dict(vocab_size=V, hidden_size=32, n_layer=2, n_head=4), 2),
    "mpt": ("MptForCausalLM", dict(vocab_size=V, d_model=32, n_layers=2, n_heads=4, max_seq_len=64), 2),
    "opt": (
        "OPTForCausalLM",
        dict(
            vocab_size=V,
            hidden_size=32,
            ffn_dim=40,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
            word_embed_proj_dim=32,
        ),
        2,
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        dict(
            vocab_size=V,
            hidden_size=32,
            intermediate_size=40,
            moe_intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=2,
            topk_group=1,
            n_shared_experts=1,
            kv_lora_rank=8,
            q_lora_rank=16,
            qk_rope_head_dim=4,
            qk_nope_head_dim=8,
            v_head_dim=8,
            first_k_dense_replace=1,
        ),
        2,
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        {**_LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
        2,
    ),
    "vit": (
        "ViTModel",
        dict(
            hidden_size=32,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=16,
            patch_size=8,
        ),
        2,
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        {**_BART, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 20},
        6,
    ),
}


def made(name: str, attention: str = "eager") -> nn.Module:
    """A model in evaluation, every parameter drawn: norms, sinks and biases too."""
    import transformers

    cls, options, _ = TYPES[name]
    config = transformers.AutoConfig.for_model(name, **options)
    config._attn_implementation = attention
    torch.manual_seed(0)
    model: nn.Module = getattr(transformers, cls)(config)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return model.eval()


def inputs(name: str) -> dict[str, Tensor]:
    """What the forward of a type is handed."""
    if name == "vit":
        return {"pixel_values": torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(4))}
    if name == "whisper":
        features = torch.randn(1, 8, 20, generator=torch.Generator().manual_seed(4))
        return {"input_features": features, "decoder_input_ids": ids(6)}
    if name in ("bart", "marian", "t5"):
        return {"input_ids": ids(), "decoder_input_ids": ids(6)}
    return {"input_ids": ids()}

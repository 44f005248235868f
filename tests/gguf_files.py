"""GGUF files of folders in Hugging Face layout, written by the package `gguf` as llama.cpp's convert_hf_to_gguf.py does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

_LLAMA = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_GPT2 = {
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def write(
    folder: Path,
    path: Path,
    kind: str = "F32",
    *,
    words: str = "qwen2",
    only: str = "",
    fields: Mapping[str, Any] | None = None,
    slower: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """The file; matrices in `kind` (those whose name begins with `only`); the numbers that were written, by name.

    `fields` are written besides, `slower` is the table that LLaMA 3.1's rotary positions have.
    """
    config = json.loads((folder / "config.json").read_text())
    architecture = config["model_type"]
    writer = gguf.GGUFWriter(path, architecture)
    (_gpt2 if architecture == "gpt2" else _llama)(writer, config)
    if words:
        _tokenizer(writer, folder, config, words)
    for field, value in (fields or {}).items():
        kind_of_value = {str: "string", bool: "bool", int: "uint32", float: "float32"}[type(value)]
        getattr(writer, f"add_{kind_of_value}")(field, value)
    if slower is not None:
        writer.add_tensor("rope_freqs.weight", slower)
    written: dict[str, np.ndarray] = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        new = _name(name, architecture)
        if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = np.ascontiguousarray(tensor.T)
        if architecture == "llama" and ".q_proj." in name:
            tensor = permute(tensor, config["num_attention_heads"])
        if architecture == "llama" and ".k_proj." in name:
            tensor = permute(tensor, config["num_key_value_heads"])
        tensor = written[new] = np.ascontiguousarray(tensor, dtype=np.float32)
        if tensor.ndim > 1 and kind != "F32" and new.startswith(only):
            packed = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(new, gguf.quantize(tensor, packed), raw_dtype=packed)
        else:
            writer.add_tensor(new, tensor)
    for finish in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        finish()
    return written


def permute(weights: np.ndarray, heads: int) -> np.ndarray:
    """As llama.cpp writes W_Q and W_K of LLaMA."""
    shape = (heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return weights.reshape(shape).swapaxes(1, 2).reshape(weights.shape)


def _name(name: str, architecture: str) -> str:
    module, __, part = name.rpartition(".")
    names = _GPT2 if architecture == "gpt2" else _LLAMA
    inner = module.removeprefix("model.layers.").removeprefix("transformer.h.")
    if inner == module:
        return f"{names[module]}.{part}"
    number, __, rest = inner.partition(".")
    return f"blk.{number}.{names[rest]}.{part}"


def _llama(writer: Any, config: dict[str, Any]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    rope = config.get("rope_parameters") or {}
    writer.add_rope_freq_base(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_rope_dimension_count(config["head_dim"])


def _gpt2(writer: Any, config: dict[str, Any]) -> None:
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_feed_forward_length(config["n_inner"] or 4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])


def _tokenizer(writer: Any, folder: Path, config: dict[str, Any], words: str) -> None:
    for name, add in (("bos_token_id", writer.add_bos_token_id), ("eos_token_id", writer.add_eos_token_id)):
        if config.get(name) is not None:
            add(config[name])
    if (folder / "tokenizer.model").is_file():
        _sentencepiece(writer, folder, config["vocab_size"])
        return
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    by_id = {id: token for token, id in tokenizer.get_vocab().items()}
    added = tokenizer.added_tokens_decoder
    rows = config["vocab_size"]
    tokens = [by_id.get(id, f"[PAD{id}]") for id in range(rows)]
    kinds = [
        gguf.TokenType.UNUSED
        if id not in by_id
        else gguf.TokenType.CONTROL
        if id in added and added[id].special
        else gguf.TokenType.USER_DEFINED
        if id in added
        else gguf.TokenType.NORMAL
        for id in range(rows)
    ]
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in backend["model"].get("merges", [])]
    writer.add_tokenizer_model("gpt2" if backend["decoder"]["type"] == "ByteLevel" else "llama")
    writer.add_tokenizer_pre(words)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if merges:
        writer.add_token_merges(merges)


def _sentencepiece(writer: Any, folder: Path, rows: int) -> None:
    """As _create_vocab_sentencepiece of llama.cpp's converter; rows without a piece are unused."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    tokens, scores, kinds = [f"[PAD{id}]" for id in range(rows)], [-10_000.0] * rows, [gguf.TokenType.UNUSED] * rows
    for id in range(model.get_piece_size()):
        tokens[id], scores[id], kinds[id] = model.id_to_piece(id), model.get_score(id), gguf.TokenType.NORMAL
        for type, holds in (
            (gguf.TokenType.UNKNOWN, model.is_unknown),
            (gguf.TokenType.CONTROL, model.is_control),
            (gguf.TokenType.BYTE, model.is_byte),
        ):
            kinds[id] = type if holds(id) else kinds[id]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)

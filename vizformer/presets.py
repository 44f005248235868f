"""Models of the literature by name: their options as published."""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # Vaswani et al. 2017, Table 3, "base"; 37,000 shared BPE tokens (5.1).
    "transformer-base": dict(
        vocab_size=37_000,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_encoder_layers=6,
        n_decoder_layers=6,
        scaled_embedding=True,
        max_positions=5000,
    ),
    # Radford et al. 2019, the smallest of Table 2.
    "gpt2-small": dict(
        vocab_size=50_257,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_decoder_layers=12,
        max_positions=1024,
        positions="learned",
        norm_order="pre",
        final_norm=True,
        activation="gelu_tanh",
        eos_id=50_256,
        bos_id=50_256,
    ),
    # Devlin et al. 2018, "base"; the English uncased vocabulary.
    "bert-base": dict(
        vocab_size=30_522,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_encoder_layers=12,
        positions="learned",
        n_segments=2,
        embedding_norm=True,
        norm_eps=1e-12,
        activation="gelu",
        head="transform",
        pad_id=0,
        bos_id=101,
        eos_id=102,
        mask_id=103,
    ),
    # Touvron et al. 2023, Table 2, the smallest.
    "llama-7b": dict(
        vocab_size=32_000,
        d_model=4096,
        n_heads=32,
        d_ff=11_008,
        n_decoder_layers=32,
        max_positions=2048,
        positions="rope",
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=1e-6,
        activation="silu",
        feedforward="gated",
        bias=False,
        tied_unembedding=False,
        dropout=0.0,
        bos_id=1,
        eos_id=2,
    ),
}

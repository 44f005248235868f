"""Models of the literature by name: their options as published."""

from typing import Any

_BERT: dict[str, Any] = dict(
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
)
_GPT: dict[str, Any] = dict(positions="learned", norm_order="pre", final_norm=True, activation="gelu_tanh")
_LLAMA: dict[str, Any] = dict(
    positions="rope",
    norm_order="pre",
    norm="rms_norm",
    final_norm=True,
    activation="silu",
    feedforward="gated",
    bias=False,
    tied_unembedding=False,
    dropout=0.0,
    bos_id=1,
    eos_id=2,
)

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
    # The same table, "big".
    "transformer-big": dict(
        vocab_size=37_000,
        d_model=1024,
        n_heads=16,
        d_ff=4096,
        n_encoder_layers=6,
        n_decoder_layers=6,
        scaled_embedding=True,
        max_positions=5000,
        dropout=0.3,
    ),
    # Radford et al. 2019, the smallest of Table 2.
    "gpt2-small": dict(
        vocab_size=50_257,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_decoder_layers=12,
        max_positions=1024,
        **_GPT,
        eos_id=50_256,
        bos_id=50_256,
    ),
    # The others of that table; heads are 64 wide.
    "gpt2-medium": dict(
        vocab_size=50_257, d_model=1024, n_heads=16, d_ff=4096, n_decoder_layers=24, max_positions=1024, **_GPT
    ),
    "gpt2-large": dict(
        vocab_size=50_257, d_model=1280, n_heads=20, d_ff=5120, n_decoder_layers=36, max_positions=1024, **_GPT
    ),
    "gpt2-xl": dict(
        vocab_size=50_257, d_model=1600, n_heads=25, d_ff=6400, n_decoder_layers=48, max_positions=1024, **_GPT
    ),
    # Brown et al. 2020, Table 2.1, the last row (which leaves out that every second layer is sparse).
    "gpt3-175b": dict(
        vocab_size=50_257, d_model=12_288, n_heads=96, d_ff=49_152, n_decoder_layers=96, max_positions=2048, **_GPT
    ),
    # Devlin et al. 2018, "base"; the English uncased vocabulary.
    "bert-base": dict(
        vocab_size=30_522,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_encoder_layers=12,
        **_BERT,
    ),
    # The same, "large".
    "bert-large": dict(vocab_size=30_522, d_model=1024, n_heads=16, d_ff=4096, n_encoder_layers=24, **_BERT),
    # Touvron et al. 2023, Table 2, the smallest.
    "llama-7b": dict(
        vocab_size=32_000,
        d_model=4096,
        n_heads=32,
        d_ff=11_008,
        n_decoder_layers=32,
        max_positions=2048,
        **_LLAMA,
        norm_eps=1e-6,
    ),
    # Touvron et al. 2023, "Llama 2", Table 1 and section 2.2; widths from the configuration published with it.
    "llama2-70b": dict(
        vocab_size=32_000,
        d_model=8192,
        n_heads=64,
        n_kv_heads=8,
        d_ff=28_672,
        n_decoder_layers=80,
        max_positions=4096,
        **_LLAMA,
    ),
    # Jiang et al. 2023, Table 1.
    "mistral-7b": dict(
        vocab_size=32_000,
        d_model=4096,
        n_heads=32,
        n_kv_heads=8,
        d_ff=14_336,
        n_decoder_layers=32,
        max_positions=8192,
        sliding_window=4096,
        **_LLAMA,
    ),
    # Raffel et al. 2019, section 3.1.1 ("base"); 32,000 pieces and 100 marks, filled up to 32,128 in the published files.
    "t5-base": dict(
        vocab_size=32_128,
        d_model=768,
        n_heads=12,
        d_ff=3072,
        n_encoder_layers=12,
        n_decoder_layers=12,
        positions="relative",
        attention_scale=1.0,
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=1e-6,
        bias=False,
        logit_scale=768**-0.5,
        pad_id=0,
        eos_id=1,
        decoder_start_id=0,
    ),
    # Lewis et al. 2019, section 2.1 ("large"); the vocabulary of RoBERTa and what was added to it.
    "bart-large": dict(
        vocab_size=50_265,
        d_model=1024,
        n_heads=16,
        d_ff=4096,
        n_encoder_layers=12,
        n_decoder_layers=12,
        max_positions=1024,
        positions="learned",
        stack_inputs="own",
        embedding_norm=True,
        activation="gelu",
        pad_id=1,
        bos_id=0,
        eos_id=2,
        decoder_start_id=2,
    ),
}

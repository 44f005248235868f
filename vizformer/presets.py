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


def _model(
    vocab_size: int, d_model: int, n_heads: int, d_ff: int, layers: tuple[int, int], **others: Any
) -> dict[str, Any]:
    """The options of a model with so many layers in its encoder and in its decoder."""
    depths = {"n_encoder_layers": layers[0], "n_decoder_layers": layers[1]}
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "n_heads": n_heads, "d_ff": d_ff}
    return sizes | {name: depth for name, depth in depths.items() if depth} | others


PRESETS: dict[str, dict[str, Any]] = {
    # Vaswani et al. 2017, Table 3, "base"; 37,000 shared BPE tokens (5.1).
    "transformer-base": _model(37_000, 512, 8, 2048, (6, 6), scaled_embedding=True, max_positions=5000),
    # The same table, "big".
    "transformer-big": _model(37_000, 1024, 16, 4096, (6, 6), scaled_embedding=True, max_positions=5000, dropout=0.3),
    # Radford et al. 2019, the smallest of Table 2.
    "gpt2-small": _model(50_257, 768, 12, 3072, (0, 12), max_positions=1024, eos_id=50_256, bos_id=50_256, **_GPT),
    # The others of that table; heads are 64 wide.
    "gpt2-medium": _model(50_257, 1024, 16, 4096, (0, 24), max_positions=1024, **_GPT),
    "gpt2-large": _model(50_257, 1280, 20, 5120, (0, 36), max_positions=1024, **_GPT),
    "gpt2-xl": _model(50_257, 1600, 25, 6400, (0, 48), max_positions=1024, **_GPT),
    # Brown et al. 2020, Table 2.1, the last row (which leaves out that every second layer is sparse).
    "gpt3-175b": _model(50_257, 12_288, 96, 49_152, (0, 96), max_positions=2048, **_GPT),
    # Devlin et al. 2018, "base"; the English uncased vocabulary.
    "bert-base": _model(30_522, 768, 12, 3072, (12, 0), **_BERT),
    # The same, "large".
    "bert-large": _model(30_522, 1024, 16, 4096, (24, 0), **_BERT),
    # Touvron et al. 2023, Table 2, the smallest.
    "llama-7b": _model(32_000, 4096, 32, 11_008, (0, 32), max_positions=2048, norm_eps=1e-06, **_LLAMA),
    # Touvron et al. 2023, "Llama 2", Table 1 and section 2.2; widths from the configuration published with it.
    "llama2-70b": _model(32_000, 8192, 64, 28_672, (0, 80), n_kv_heads=8, max_positions=4096, **_LLAMA),
    # Jiang et al. 2023, Table 1.
    "mistral-7b": _model(
        32_000, 4096, 32, 14_336, (0, 32), n_kv_heads=8, max_positions=8192, sliding_window=4096, **_LLAMA
    ),
    # Raffel et al. 2019, section 3.1.1 ("base"); 32,000 pieces and 100 marks, filled up to 32,128 in the published files.
    "t5-base": _model(
        32_128,
        768,
        12,
        3072,
        (12, 12),
        positions="relative",
        attention_scale=1.0,
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=1e-06,
        bias=False,
        logit_scale=768**-0.5,
        pad_id=0,
        eos_id=1,
        decoder_start_id=0,
    ),
    # Lewis et al. 2019, section 2.1 ("large"); the vocabulary of RoBERTa and what was added to it.
    "bart-large": _model(
        50_265,
        1024,
        16,
        4096,
        (12, 12),
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

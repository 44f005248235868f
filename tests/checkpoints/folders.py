"""Tiny folders in Hugging Face layout, written by `transformers`, every parameter away from its default."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, processors, trainers

from recipes.vocabulary import train_wordpiece
from tests import tiny

TEXTS = (
    "The cats are here: x, y and two naive z!",
    "我有一只猫。",
    "I have  two dogs,\nand a cat!",
    "naïve café 🐱 don't",
    "x",
)
CORPUS = [*tiny.TEXTS, *TEXTS] * 4
# The sizes of an encoder, of a decoder, and of both stacks, as most families call them.
ENCODER: dict[str, Any] = dict(
    hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=24, max_position_embeddings=64
)
DECODER: dict[str, Any] = dict(ENCODER, num_key_value_heads=2)
BOTH: dict[str, Any] = dict(
    **{
        f"{stack}_{name}": n
        for stack in ("encoder", "decoder")
        for name, n in (("attention_heads", 4), ("ffn_dim", 24))
    },
    d_model=16,
    encoder_layers=2,
    decoder_layers=3,
    max_position_embeddings=64,
)


def gpt2(folder: Path, **changes: Any) -> Path:
    """vocab.json and merges.txt; no tokenizer.json."""
    write_byte_level(folder, {"<|endoftext|>": 3})
    options = dict(
        vocab_size=vocabulary(folder),
        n_embd=16,
        n_head=4,
        n_layer=3,
        n_positions=64,
        n_inner=24,
        bos_token_id=3,
        eos_token_id=3,
    )
    return written(folder, "GPT2Config", "GPT2LMHeadModel", options, changes)


def llama(folder: Path, **changes: Any) -> Path:
    """tokenizer.json as LLaMA's: spaces as ▁, unknown characters as bytes, a start mark."""
    write_metaspace(folder)
    options = dict(DECODER, vocab_size=vocabulary(folder), bos_token_id=1, eos_token_id=2)
    kind = changes.pop("kind", "Llama")
    return written(folder, f"{kind}Config", f"{kind}ForCausalLM", options, changes)


def qwen2(folder: Path, **changes: Any) -> Path:
    """tokenizer.json as Qwen's: byte-level, words split their way, no start mark."""
    return _qwen(folder, "Qwen2", DECODER, changes)


def qwen3(folder: Path, **changes: Any) -> Path:
    """Heads are wider than their share of d_model."""
    return _qwen(folder, "Qwen3", dict(DECODER, head_dim=6), changes)


def _qwen(folder: Path, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> Path:
    from transformers import Qwen2Tokenizer

    write_byte_level(folder, {"<|endoftext|>": 3})
    size, settings = vocabulary(folder), {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    made = Qwen2Tokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    made.save_pretrained(folder)
    options = {**options, "vocab_size": size, "eos_token_id": 3}
    return written(folder, f"{kind}Config", f"{kind}ForCausalLM", options, changes)


def opt(folder: Path, **changes: Any) -> Path:
    """vocab.json and merges.txt with OPT's marks; a text begins with </s>."""
    write_byte_level(folder, {"<s>": 0, "<pad>": 1, "</s>": 2})
    marks = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}
    said = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, **marks}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    options = dict(
        vocab_size=vocabulary(folder),
        hidden_size=16,
        word_embed_proj_dim=16,
        ffn_dim=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    return written(folder, "OPTConfig", "OPTForCausalLM", options, changes)


def bert(folder: Path, *, model: str = "BertForMaskedLM", **changes: Any) -> Path:
    """vocab.txt; no tokenizer.json."""
    write_wordpiece(folder)
    return written(folder, "BertConfig", model, dict(ENCODER, vocab_size=vocabulary(folder)), changes)


def distilbert(folder: Path, *, model: str = "DistilBertForMaskedLM", **changes: Any) -> Path:
    write_wordpiece(folder)
    options = dict(
        vocab_size=vocabulary(folder), dim=16, n_layers=3, n_heads=4, hidden_dim=24, max_position_embeddings=64
    )
    return written(folder, "DistilBertConfig", model, options, changes)


def roberta(folder: Path, *, model: str = "RobertaForMaskedLM", **changes: Any) -> Path:
    """vocab.json and merges.txt with RoBERTa's marks; the position table has two rows more than positions."""
    write_byte_level(folder, {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4})
    options = dict(ENCODER, vocab_size=vocabulary(folder), max_position_embeddings=66, type_vocab_size=1)
    return written(folder, "RobertaConfig", model, options, changes)


def marian(folder: Path, *, model: str = "MarianMTModel", **changes: Any) -> Path:
    """A tokenizer.json; the padding is the last token, as in the OPUS-MT vocabularies."""
    write_metaspace(folder, end="</s>")
    options = dict(
        BOTH,
        vocab_size=vocabulary(folder),
        encoder_layers=3,
        decoder_layers=2,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=vocabulary(folder) - 1,
        eos_token_id=2,
        decoder_start_token_id=vocabulary(folder) - 1,
        forced_eos_token_id=None,
    )
    written(folder, "MarianConfig", model, options, changes)
    # the waves were randomised too: with a head they are not saved, without one they are
    save_tensors(folder, {name: t for name, t in tensors(folder).items() if "embed_positions" not in name})
    return folder


def bart(folder: Path, *, model: str = "BartForConditionalGeneration", **changes: Any) -> Path:
    """vocab.json and merges.txt with BART's marks; the position tables have two rows more than positions."""
    write_byte_level(folder, {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4})
    options = dict(BOTH, vocab_size=vocabulary(folder), forced_eos_token_id=None)
    return written(folder, "BartConfig", model, options, changes)


def t5(folder: Path, *, model: str = "T5ForConditionalGeneration", **changes: Any) -> Path:
    """Heads narrower than their share of d_model; buckets so few that a short text reaches the shared ones."""
    write_metaspace(folder, end="</s>")
    options = dict(
        vocab_size=vocabulary(folder),
        d_model=16,
        d_kv=3,
        d_ff=24,
        num_layers=3,
        num_decoder_layers=2,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=10,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
    )
    return written(folder, "T5Config", model, options, changes)


def t5_v1_1(folder: Path, **changes: Any) -> Path:
    """A gated layer and a head of its own, as the files of v1.1 say it."""
    t5(folder, **{"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "d_kv": 6, **changes})
    change(folder, tie_word_embeddings=False, scale_decoder_outputs=...)
    weights = tensors(folder)
    noise = torch.randn(weights["shared.weight"].shape, generator=torch.Generator().manual_seed(9))
    save_tensors(folder, {**weights, "lm_head.weight": noise / 4})
    return folder


FAMILIES: dict[str, Callable[..., Path]] = {
    "gpt2": gpt2,
    "llama": llama,
    "bert": bert,
    "distilbert": distilbert,
    "roberta": roberta,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "opt": opt,
    "marian": marian,
    "bart": bart,
    "t5": t5,
    "t5_v1_1": t5_v1_1,
}


def written(folder: Path, config: str, model: str, options: dict[str, Any], changes: dict[str, Any]) -> Path:
    """A randomised model of `transformers`, saved as its users save theirs."""
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**{**options, **changes}))
    tiny.randomise(made)
    if hasattr(made, "final_logits_bias"):  # no parameter
        made.final_logits_bias.normal_(generator=torch.Generator().manual_seed(8))
    for number, (name, buffer) in enumerate(made.named_buffers()):
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(std=0.2, generator=torch.Generator().manual_seed(number))
    made.eval().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def change(folder: Path, name: str = "config.json", **fields: Any) -> Path:
    """Sets fields of a JSON file; a field that is `...` is taken out."""
    content = {**json.loads((folder / name).read_text()), **fields}
    (folder / name).write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))
    return folder


def vocabulary(folder: Path) -> int:
    return int(json.loads((folder / "sizes.json").read_text()))


def _start(folder: Path, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sizes.json").write_text(json.dumps(size))  # for this module; the loader does not look at it


def write_byte_level(folder: Path, special: dict[str, int]) -> None:
    """Pieces learned by BPE, with the special tokens in front."""
    from tokenizers import pre_tokenizers

    learner = Backend(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=320, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    model = json.loads(learner.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    first = min(special.values())
    order = [*pieces[:first], *special, *pieces[first:]]
    vocabulary = {piece: id for id, piece in enumerate(order)}
    assert {token: vocabulary[token] for token in special} == special
    _start(folder, len(vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    merges = "".join(f"{first} {second}\n" for first, second in model["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
    kind = "RobertaTokenizer" if len(special) > 1 else "GPT2Tokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))


def write_wordpiece(folder: Path) -> None:
    learner = train_wordpiece(CORPUS, 200)
    vocabulary = learner.get_vocab()
    _start(folder, len(vocabulary))
    (folder / "vocab.txt").write_text("".join(f"{p}\n" for p in sorted(vocabulary, key=vocabulary.__getitem__)))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))


def write_metaspace(folder: Path, end: str = "") -> None:
    learner = Backend(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    learner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    learner.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=340, special_tokens=["<unk>", "<s>", "</s>", *alphabet], show_progress=False),
    )
    content = json.loads(learner.to_str())
    content["added_tokens"] = content["added_tokens"][:3]  # the bytes are pieces, not marks
    learner = Backend.from_str(json.dumps(content))
    learner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    single, mark = (f"$A {end}", (end, 2)) if end else ("<s> $A", ("<s>", 1))
    learner.post_processor = processors.TemplateProcessing(single=single, special_tokens=[mark])
    _start(folder, learner.get_vocab_size())
    learner.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save_tensors(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(contiguous, folder / "model.safetensors", metadata={"format": "pt"})

"""Small models of `transformers` with random numbers, as a file for `vizformer --model tests/recorded_models.py:decoder`.

They read English and Chinese by the tokenizers of the bundled models.
"""

from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from vizformer.assets import asset

SIZES: dict[str, Any] = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256)


def _tokenizer(model: str) -> Tokenizer:
    return Tokenizer.from_file(str(asset("models", model, "tokenizer.json")))


def _random(model: nn.Module) -> nn.Module:
    torch.manual_seed(7)
    for one in model.parameters():
        nn.init.normal_(one, std=0.1)
    return model.eval()


def decoder() -> tuple[nn.Module, Tokenizer]:
    from transformers import GPT2Config, GPT2LMHeadModel

    reader = _tokenizer("stories")
    config = GPT2Config(vocab_size=reader.get_vocab_size(), n_embd=32, n_layer=2, n_head=4, n_positions=256)
    return _random(GPT2LMHeadModel(config)), reader


def encoder() -> tuple[nn.Module, Tokenizer]:
    from transformers import BertConfig, BertForMaskedLM

    reader = _tokenizer("cloze")
    config = BertConfig(vocab_size=reader.get_vocab_size(), intermediate_size=48, **SIZES)
    return _random(BertForMaskedLM(config)), reader


def translator() -> tuple[nn.Module, Tokenizer]:
    from transformers import T5Config, T5ForConditionalGeneration

    reader = _tokenizer("cloze")
    start = reader.token_to_id("[CLS]")
    config = T5Config(
        vocab_size=reader.get_vocab_size(),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=start,
        eos_token_id=reader.token_to_id("[SEP]"),
        pad_token_id=reader.token_to_id("[PAD]") or 0,
    )
    return _random(T5ForConditionalGeneration(config)), reader

"""The tokenizer in a GGUF file: SentencePiece's BPE, or byte-level BPE with the rules by which GPT-2, LLaMA 3 or Qwen cut
words.

Source: llama.cpp, llama-vocab.cpp (LLAMA_VOCAB_TYPE_SPM, LLAMA_VOCAB_PRE_TYPE_...), and the tokenizers published with the
models.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.tokenizers.protobuf import WireError
from vizformer.checkpoints.tokenizers.refusals import guarded, raise_refusal
from vizformer.checkpoints.tokenizers.sentencepiece_files import BYTE, Piece, SentencePiece, build, check, mark
from vizformer.checkpoints.tokenizers.vocabularies import LLAMA3_WORDS, QWEN_WORDS, TOKENIZER, read_text, read_tokenizer
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_WORDS = {"gpt-2": "", "gpt2": "", "llama-bpe": LLAMA3_WORDS, "llama3": LLAMA3_WORDS, "qwen2": QWEN_WORDS}
_BEGIN_WITH_A_MARK = ("llama-bpe", "llama3")  # where no field says whether texts do
_CONTROL, _ADDED = 3, 4  # kinds of tokens: marks, and texts that are tokens as a whole


def tokenizer(fields: Mapping[str, Any], folder: Folder, file: str, rows: int) -> tuple[Backend | None, Message | None]:
    """What splits texts, and what there is to note about it; None where neither the file nor the folder says it."""
    if folder.has(TOKENIZER):
        return read_tokenizer(folder, rows=rows), N_(
            "{file} beside the weights is the model's tokenizer", file=TOKENIZER
        )
    kind = fields.get("tokenizer.ggml.model")
    if kind is None or kind == "none":
        return None, None
    if kind == "llama":
        return _sentencepiece(fields, file), None
    words, note = fields.get("tokenizer.ggml.pre"), None
    if kind != "gpt2" or (words is not None and not (isinstance(words, str) and words in _WORDS)):
        raise CheckpointError(
            N_(
                "{file} has a tokenizer of the kind {kind}; only llama is read, and gpt2 with words cut as {words}. Put the "
                "original model's {tokenizer} beside the file: then that is the tokenizer.",
                file=shown(file),
                kind=shown(f"{kind} {words or ''}".strip()),
                words=", ".join(_WORDS),
                tokenizer=TOKENIZER,
            )
        )
    if words is None:
        note = N_("the file does not say how words are cut before their bytes are merged: as GPT-2 does it")
    content = _as_json(fields, str(words or "gpt-2"), file)
    return read_text(content, file, rows), note


def _sentencepiece(fields: Mapping[str, Any], file: str) -> Backend:
    """SentencePiece's BPE, as LLaMA 1 and 2 and Mistral have it: pieces, scores and types as in its own files."""
    tokens, scores, kinds = (fields.get(f"tokenizer.ggml.{name}") for name in ("tokens", "scores", "token_type"))
    if not (_are_texts(tokens) and isinstance(scores, list) and isinstance(kinds, list)):
        raise_refusal(file, "its tokenizer has no list of tokens, or none of scores, or none of kinds")
    of_types = all(type(score) is float for score in scores) and all(type(kind) is int for kind in kinds)
    if not (len(tokens) == len(scores) == len(kinds) and of_types):
        raise_refusal(file, "its tokens do not have a score and a kind each")
    pieces = [Piece(*one) for one in zip(tokens, scores, kinds, strict=True)]

    def said(name: str, otherwise: Any) -> Any:
        value = fields.get(f"tokenizer.ggml.{name}", otherwise)
        if type(value) is not type(otherwise):
            raise_refusal(file, f"{name} is {shown(value)}")
        return value

    whole = SentencePiece(
        pieces,
        "bpe",
        byte_fallback=BYTE in kinds,
        bos_id=said("bos_token_id", 1),
        eos_id=said("eos_token_id", 2),
        add_dummy_prefix=said("add_space_prefix", True),
        remove_extra_whitespaces=said("remove_extra_whitespaces", False),
    )
    try:
        check(whole)
    except WireError as error:
        raise_refusal(file, str(error), error)
    backend = guarded(file, lambda: build(whole))
    mark(file, backend, whole, begun=said("add_bos_token", True), ended=said("add_eos_token", False))
    return backend


def _as_json(fields: Mapping[str, Any], words: str, file: str) -> str:
    """What tokenizer.json would say; it is then looked at as any other."""
    tokens, merges = fields.get("tokenizer.ggml.tokens"), fields.get("tokenizer.ggml.merges")
    if not (tokens and merges and _are_texts(tokens) and _are_texts(merges)):
        raise_refusal(file, "its tokenizer has no list of tokens, or none of merges")
    kinds = fields.get("tokenizer.ggml.token_type", [])
    if not (isinstance(kinds, list) and all(type(kind) is int for kind in kinds)):
        raise_refusal(file, "the kinds of its tokens are no list of whole numbers")
    vocabulary = {token: id for id, token in enumerate(tokens)}
    pairs = [merge.split(" ") for merge in merges]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise_refusal(file, f"{shown(' '.join(wrong[0]))} is no pair")
    added = [
        dict(id=id, content=token, special=kind == _CONTROL, normalized=False, **_AS_IT_STANDS)
        for id, (token, kind) in enumerate(zip(tokens, kinds, strict=False))
        if kind in (_CONTROL, _ADDED) and token
    ]
    into_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": not _WORDS[words]}
    cut = {"type": "Split", "pattern": {"Regex": _WORDS[words]}, "behavior": "Isolated", "invert": False}
    whole = words in ("llama-bpe", "llama3")  # a word that is a token is one, whatever its merges say
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": added,
            "normalizer": {"type": "NFC"} if words == "qwen2" else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, into_bytes]} if _WORDS[words] else into_bytes,
            "post_processor": _marks(fields, tokens, words, file),
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            "model": {
                "type": "BPE",
                "vocab": vocabulary,
                "merges": pairs,
                "ignore_merges": whole,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "dropout": None,
                "fuse_unk": False,
                "byte_fallback": False,
            },
        }
    )


_AS_IT_STANDS = {"single_word": False, "lstrip": False, "rstrip": False}


def _marks(fields: Mapping[str, Any], tokens: list[str], words: str, file: str) -> dict[str, Any]:
    """A start mark before every text, where the file says so, or says nothing and has LLaMA 3's way of cutting words."""
    offsets = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    id = fields.get("tokenizer.ggml.bos_token_id")
    wanted = fields.get("tokenizer.ggml.add_bos_token", words in _BEGIN_WITH_A_MARK)
    if type(wanted) is not bool:
        raise_refusal(file, "whether texts begin with a mark is neither true nor false")
    if id is not None and not (type(id) is int and 0 <= id < len(tokens)):
        raise_refusal(file, f"its start mark {shown(id)} is none of its tokens")
    if not wanted or id is None:
        return offsets
    start = tokens[id]
    single = [{"SpecialToken": {"id": start, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {start: {"id": start, "ids": [id], "tokens": [start]}},
    }
    return {"type": "Sequence", "processors": [offsets, template]}


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)

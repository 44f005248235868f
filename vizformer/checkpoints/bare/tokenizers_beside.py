"""The tokenizer that lies beside bare weights, if there is one, and whether it goes with them."""

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.bare.vocabulary_tokenizer import Inside
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import sentencepiece_files
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.token_ids import without_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import SOURCES, TOKENIZER, TRIAL, byte_level, read_tokenizer, tried
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message
from vizformer.text import Tokenizer

END, BEGIN_OF_LLAMA_3 = "<|endoftext|>", "<|begin_of_text|>"
PARAMS = "params.json"  # of Meta's code, in which every text begins with the mark


def backend_beside(folder: Folder, rows: int) -> Backend | None:
    if folder.has(TOKENIZER):
        return read_tokenizer(folder, rows=rows)
    if folder.has("vocab.json") and folder.has("merges.txt"):
        return byte_level(folder, {"bos_token": END, "eos_token": END, "unk_token": END})
    name = sentencepiece_files.find(folder)
    return None if name is None else sentencepiece_files.sentencepiece(folder, name, begun=folder.has(PARAMS))


def usual_marks(folder: Folder, backend: Backend) -> dict[str, str]:
    """The marks of a text, where no file says them: GPT-2's, or those of Meta's tokenizers."""
    begin, end = ("<s>", "</s>") if folder.has(PARAMS) else (END, END)
    if backend.token_to_id(BEGIN_OF_LLAMA_3) is not None:
        begin, end = BEGIN_OF_LLAMA_3, "<|end_of_text|>"
    return {"bos_token": begin, "eos_token": end}


def tokenizers_for(
    folder: Folder, backend: Backend | None, config: ModelConfig, words: Inside | None
) -> tuple[Tokenizer, Tokenizer | None, Message]:
    """The tokenizer beside the weights, that of a vocabulary among them, or the reader of numbers.

    Also the source's, if it is another, and what is assumed.
    """
    rows, has_source = config.source_vocab_size, folder.has(SOURCES)
    if backend is None:
        if words is not None:
            return *words.tokenizers(), words.note
        return without_tokenizer(config)
    tokenizer = _checked(TOKENIZER, backend)
    if rows is None:
        return tokenizer, None, N_("the tokenizer beside the weights is the model's")
    if not has_source:
        return tokenizer, None, N_("the tokenizer beside the weights is that of the source and of the target")
    return (
        tokenizer,
        _checked(SOURCES, read_tokenizer(folder, SOURCES)),
        N_("{sources} beside the weights is the source's tokenizer, the other one the target's", sources=SOURCES),
    )


def stray(folder: Folder, backend: Backend, rows: int, source_rows: int | None) -> Message | None:
    """Why the tokenizer beside the weights is not the model's; None where it may be.

    Every token id must have a row in a table of embeddings, and each of two tables a tokenizer.
    """
    if source_rows not in (None, rows) and not folder.has(SOURCES):
        return N_(
            "the model has two vocabularies, of {source:,} and {target:,} tokens, and there is one "
            "tokenizer beside the weights: VizFormer does not use it (the source's would be {sources}, "
            "the target's {targets})",
            source=source_rows,
            target=rows,
            sources=SOURCES,
            targets=TOKENIZER,
        )
    pairs = [(TOKENIZER, backend, rows)]
    if source_rows is not None and folder.has(SOURCES):
        pairs.append((SOURCES, read_tokenizer(folder, SOURCES), source_rows))
    for name, one, expected in pairs:
        if not 0 <= (found := _highest(name, one)) < expected:
            return N_(
                "the tokenizer beside the weights has token ids up to {found}, the embedding table "
                "{expected} rows: the tokenizer belongs to another model, and VizFormer does not use it",
                found=found,
                expected=expected,
            )
    return None


def _highest(name: str, backend: Backend) -> int:
    """The highest token id that it has, or makes."""
    highest = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
    return max(highest, max(guarded(name, lambda: backend.encode(TRIAL).ids), default=-1))


def _checked(name: str, backend: Backend) -> Tokenizer:
    return tried(guarded(name, lambda: Tokenizer(backend)))

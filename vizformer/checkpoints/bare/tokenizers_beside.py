"""The tokenizer that lies beside bare weights, if there is one, and whether it goes with them."""

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.bare.vocabulary_tokenizer import Inside
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import sentencepiece_files
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.token_ids import without_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import SOURCES, TOKENIZER, TRIAL, byte_level, read_tokenizer, tried
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
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
    if backend is None and (rows is None or not has_source):
        if words is not None:
            return *words.tokenizers(), words.note
        return without_tokenizer(config)
    if backend is not None and rows is None:
        return _fitting(backend, config.vocab_size), None, N_("the tokenizer beside the weights is the model's")
    if backend is None or (not has_source and rows != config.vocab_size):
        raise CheckpointError(
            "The model has two vocabularies, of {source:,} and {target:,} tokens, but there is one tokenizer beside "
            "the weights. Put the source's there as {sources} and the target's as {targets}, or take it away, and "
            "token ids are read instead.",
            source=rows,
            target=config.vocab_size,
            sources=SOURCES,
            targets=TOKENIZER,
        )
    tokenizer = _fitting(backend, config.vocab_size)
    if not has_source:
        return tokenizer, None, N_("the tokenizer beside the weights is that of the source and of the target")
    source = _fitting(read_tokenizer(folder, SOURCES), config.input_vocab_size, SOURCES)
    return (
        tokenizer,
        source,
        N_("{sources} beside the weights is the source's tokenizer, the other one the target's", sources=SOURCES),
    )


def _fitting(backend: Backend, rows: int, name: str = TOKENIZER) -> Tokenizer:
    """The tokenizer, every id of which must have a row in the table of embeddings."""
    highest = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
    made = max(guarded(name, lambda: backend.encode(TRIAL).ids), default=-1)
    if not 0 <= max(highest, made) < rows:
        raise CheckpointError(
            "The tokenizer beside the weights has token ids up to {found}, their table of embeddings {expected} "
            "rows: they belong to different models. Take the tokenizer away, and token ids are read instead.",
            found=max(highest, made),
            expected=rows,
        )
    return tried(guarded(name, lambda: Tokenizer(backend)))

"""The tokenizer of a folder in Hugging Face layout, and how it goes with config.json."""

import re
from collections.abc import Callable, Mapping

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tokenizers.classes import by_class
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.special_tokens import SETTINGS, as_numbers, settings, without_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import TOKENIZER, TRIAL, Vocabularies, read_tokenizer, tried
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import Message
from vizformer.text import IdTokenizer, Tokenizer

# Files that say how texts are split, also those that are not read here: a folder with one of them has a tokenizer.
_OF_A_TOKENIZER = re.compile(
    r"(tokenizer|vocab|merges|special_tokens_map|added_tokens|source_tokenizer).*|.+\.(model|spm|bpe|tiktoken|codes)",
    re.IGNORECASE | re.DOTALL,
)
_IDS = {
    "bos_id": ("bos_token", "cls_token"),
    "eos_id": ("eos_token", "sep_token"),
    "pad_id": ("pad_token",),
    "mask_id": ("mask_token",),
}


def read_vocabularies(
    folder: Folder, otherwise: Callable[[Folder], Backend | Vocabularies], rows: int
) -> Vocabularies | None:
    """The tokenizers of a folder; None where no file defines one, so that a text consists of token ids.

    Args:
        otherwise: reads other files, where there is no tokenizer.json.
    """
    if not any(_OF_A_TOKENIZER.fullmatch(name) for name in folder.names()):
        return None
    read = read_tokenizer(folder, rows=rows) if folder.has(TOKENIZER) else by_class(folder, otherwise)
    return read if isinstance(read, Vocabularies) else Vocabularies(read)


def complete_ids(options: Options, found: Mapping[str, int]) -> None:
    """Special tokens that config.json leaves open, by what the tokenizer's files call them.

    Where a text may have two parts, its end mark is the one that the tokenizer sets between them, whatever config.json
    calls the end.
    """
    if options.get("n_segments", 0) > 1:
        options["eos_id"] = None
        found = {role: id for role, id in found.items() if role != "eos_token"}
    for option, roles in _IDS.items():
        if options.get(option) is None:
            ids = [found[role] for role in roles if role in found and found[role] < options["vocab_size"]]
            options[option] = ids[0] if ids else None


def tokenizers_of(
    vocabularies: Vocabularies | None, config: ModelConfig
) -> tuple[Tokenizer, Tokenizer | None, tuple[Message, ...]]:
    """The tokenizer; the source's, where its ids are another vocabulary's; and what there is to note."""
    if vocabularies is None:
        tokenizer, source, about = without_tokenizer(config)
        return tokenizer, source, (about,)
    rows, notes = config.source_vocab_size, vocabularies.notes
    if vocabularies.apart and rows is None:
        raise CheckpointError(
            "{settings} says separate_vocabs=true, but by config.json source and target share one table of "
            "embeddings: they belong to different models. Copy both again from the model's source.",
            settings=SETTINGS,
        )
    if vocabularies.apart and rows is not None:
        return with_rows(vocabularies.predicted, config.vocab_size), with_rows(vocabularies.texts, rows), notes
    if rows is not None and rows != config.vocab_size:
        raise CheckpointError(
            "config.json describes two vocabularies, of {source:,} and {target:,} tokens, but the files hold one. "
            "Copy vocab.json, target_vocab.json and {settings} (separate_vocabs=true) from the model's source, "
            "without a tokenizer.json.",
            source=rows,
            target=config.vocab_size,
            settings=SETTINGS,
        )
    made = with_rows(vocabularies.texts, config.vocab_size).with_target(vocabularies.targets)
    return tried(made), None, notes


def with_rows(backend: Backend, rows: int) -> Tokenizer:
    """Every id it can make must have a row in the embedding table."""
    highest = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
    tokenizer = as_numbers(guarded(TOKENIZER, lambda: Tokenizer(backend)))
    is_text = not isinstance(tokenizer, IdTokenizer)
    made = max(guarded(TOKENIZER, lambda: backend.encode(TRIAL).ids), default=-1) if is_text else highest
    if not 0 <= max(highest, made) < rows:
        raise CheckpointError(
            "The tokenizer has token ids up to {found} but config.json says vocab_size={expected}: they belong to "
            "different models. Copy both again from the model's source.",
            found=max(highest, made),
            expected=rows,
        )
    return tried(tokenizer)


def note_start_mark(folder: Folder, backend: Backend, config: ModelConfig, fields: Fields) -> None:
    """tokenizer.json decides whether a text begins with the start mark; other files sometimes say something else."""
    said = settings(folder).get("add_bos_token")
    starts = config.bos_id is not None and guarded(TOKENIZER, lambda: backend.encode(TRIAL).ids[:1]) == [config.bos_id]
    if isinstance(said, bool) and said is not starts and config.n_decoder_layers:
        fields.assume(
            "{file} says add_bos_token={said}, but the tokenizer does not do so: VizFormer goes by the tokenizer",
            file=SETTINGS,
            said=shown(said),
        )

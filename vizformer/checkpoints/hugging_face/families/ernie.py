"""ERNIE (1 and 2): BERT under another name.

Source: Sun et al. 2019, "ERNIE: Enhanced Representation through Knowledge Integration", and the weights published with
it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bert_like import (
    RENAMED,
    UNUSED,
    USUAL,
    body,
    embeddings,
    head,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece
from vizformer.config import ModelConfig


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    fields.only("use_task_id", False)  # one more table
    fields.ignore("task_type_vocab_size")
    return options(fields, names)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [*embeddings(config), *body(config), *head(config)]


def tokenizer(folder: Folder) -> Backend:
    """vocab.txt."""
    return wordpiece(folder) if folder.has("vocab.txt") else no_tokenizer(folder, "tokenizer.json, or vocab.txt")


FAMILY = Family(
    name="ERNIE",
    types=("ernie",),
    prefix="ernie.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    spare=spare,
    unused=UNUSED,
    renamed=RENAMED,
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

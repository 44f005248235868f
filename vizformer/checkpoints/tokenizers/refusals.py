"""The messages about tokenizer files that cannot be used."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from vizformer.checkpoints.files.untrusted_folder import Folder, first_line, shown
from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import Message
from vizformer.text.tokenizer import failed

T = TypeVar("T")


def guarded(name: str, build: Callable[[], T]) -> T:
    """The library raises bare exceptions and, on some damaged files, what is no `Exception` at all (a Rust panic)."""
    try:
        return build()
    except VizformerError:
        raise
    except BaseException as error:
        if not failed(error):
            raise
        raise_refusal(name, first_line(error), error)


def raise_refusal(name: str, reason: str, cause: BaseException | None = None) -> NoReturn:
    raise refusal(name, reason) from cause


def refusal(name: str, reason: Message | str) -> CheckpointError:
    return CheckpointError(
        "{file} cannot be used as a tokenizer ({reason}). Copy it again from the model's source.",
        file=name,
        reason=reason,
    )


def no_tokenizer(folder: Folder, wanted: str) -> NoReturn:
    """Says what is missing, and what to do with a format that is not read for this family."""
    for name in folder.names():
        if name.endswith((".model", ".spm")):
            raise CheckpointError(
                "{folder} has its tokenizer only as {file}, which VizFormer does not read: it needs "
                "{wanted}. Open the tokenizer with the `transformers` library and write it again with "
                "save_pretrained.",
                folder=folder.name,
                file=shown(name),
                wanted=wanted,
            )
    raise CheckpointError(
        "{folder} lacks a tokenizer ({wanted}). Copy it from the model's source, or remove the remaining "
        "files of the tokenizer: VizFormer then reads token ids.",
        folder=folder.name,
        wanted=wanted,
    )


def only_tokenizer_json(folder: Folder) -> NoReturn:
    """The tokenizer of a family of which only tokenizer.json is read: asked for where there is none."""
    no_tokenizer(folder, "tokenizer.json")

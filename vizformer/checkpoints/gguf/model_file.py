"""A GGUF file becomes a model of ours: the way of a folder in Hugging Face layout, from what the file says of itself."""

import math
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.gguf import header, names, numbers
from vizformer.checkpoints.gguf.header import Header, Place
from vizformer.checkpoints.gguf.vocabulary import tokenizer
from vizformer.checkpoints.hugging_face import model_folder
from vizformer.checkpoints.hugging_face.model_folder import Examined
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

SUFFIX = ".gguf"


class NoFiles(Folder):
    """Where nothing lies beside a file: it says everything itself."""

    def names(self) -> list[str]:
        return []

    def has(self, name: str) -> bool:
        return False


def examine(folder: Folder, file: str, name: str, *, steps: bool = True) -> Examined:
    """Reads what a file holds; what is wrong with its tensors stands in the report.

    With `steps`, the report says how fine quantised numbers are, for which the scale of every block is read.
    """
    path = folder.file(file)
    found = header.read(path, file)
    kind = names.architecture(found, file)
    for place in found.tensors.values():
        if not numbers.is_read(place):
            raise numbers.not_read(place)
    whole, slowed = numbers.content(path, file), found.tensors.get(names.TABLE)
    said = names.config(found, file, None if slowed is None else numbers.tensor(whole, slowed))
    backend, about = tokenizer(found.fields, folder, file, max(p.shape[0] for p in found.tensors.values()))
    places = {names.renamed(old, kind): place for old, place in found.tensors.items()}
    if len(places) < len(found.tensors):
        raise CheckpointError("{file} holds tensors of the same name.", file=shown(file))
    tensors = {new: _stored(file, whole, place, kind, said) for new, place in places.items()}
    weights = Weights(tensors, {file: path.stat().st_size})
    vocabularies = None if backend is None else Vocabularies(backend, notes=(about,) if about is not None else ())
    examined = model_folder.understand(NoFiles(folder.path), said, weights, vocabularies, name=name)
    fates = tuple(_fate(fate, places, kind, said) for fate in examined.report.tensors)
    notes = _notes(whole, found, steps=steps)
    report = replace(examined.report, format="gguf", tensors=fates, assumptions=(*notes, *examined.report.assumptions))
    return replace(examined, report=report)


def require_fit(examined: Examined) -> None:
    """Raises:
    CheckpointError: tensors that do not fit what the file says of itself.
    """
    report = examined.report
    if report.problems:
        raise CheckpointError(
            "The tensors of {file} do not fit what it says of itself: {problems}. Copy it again, or open the original "
            "model.",
            file=shown(next(iter(report.files))),
            problems=listed(list(report.problems)),
        )


def _stored(file: str, whole: Tensor, place: Place, kind: str, said: dict[str, object]) -> Stored:
    restore = names.restored(place.name, kind, said)
    shape = place.shape
    if kind == "gpt2" and restore is not None and len(shape) == 2:
        shape = (shape[1], shape[0])
    dtype = str(numbers.PLAIN.get(place.kind.name, "float32")).removeprefix("torch.")

    def read() -> Tensor:
        tensor = numbers.tensor(whole, place)
        return tensor if restore is None else restore(tensor)

    return Stored(file, shape, dtype, read)


def _fate(fate: TensorFate, places: dict[str, Place], architecture: str, said: dict[str, object]) -> TensorFate:
    """As the file has it: by its own name, in its own shape and kind."""
    place = places.get(fate.name)
    if place is None:
        return fate
    kind = place.kind.name
    dtype = str(numbers.PLAIN[kind]).removeprefix("torch.") if kind in numbers.PLAIN else kind
    reordered = architecture != "gpt2" and names.restored(place.name, architecture, said) is not None
    return replace(fate, name=place.name, shape=place.shape, dtype=dtype, reordered=reordered)


def _notes(whole: Tensor, found: Header, *, steps: bool) -> Iterator[Message]:
    """How far quantised numbers may be from those that they were made of."""
    groups: dict[str, list[Place]] = {}
    for place in found.tensors.values():
        if place.kind.name not in numbers.PLAIN:
            groups.setdefault(place.kind.name, []).append(place)
    for name, places in groups.items():
        kind = places[0].kind
        yield N_(
            "{n} tensors are quantised as {kind}, {bits} bits a number: the numbers shown are those of the file, not "
            "those that it was made of",
            n=len(places),
            kind=name,
            bits=f"{8 * kind.size / kind.block:g}",
        )
        if name not in numbers.OFF:
            continue
        if not steps:
            about = N_(
                "{kind}: {block} numbers share a scale, and each is at most {off} steps of it off, where the scale is at "
                "least 2^-14",
                kind=name,
                block=kind.block,
                off=_rounded_up(numbers.most_off(name)),
            )
        else:
            measured = numbers.steps(whole, places)
            about = N_(
                "{kind}: {block} numbers share a scale, and each is at most {off} steps of it off",
                kind=name,
                block=kind.block,
                off=_rounded_up(numbers.most_off(name, measured.smallest)),
            )
            about = N_(
                "{about}. The largest step is {largest}; the error to be expected is {error} (root mean square, step / √12)",
                about=about,
                largest=f"{measured.largest:.3g}",
                error=f"{measured.error:.2g}",
            )
        yield about


def _rounded_up(value: float) -> str:
    """To three digits behind the point, so that a bound stays one."""
    return f"{math.ceil(1000 * value) / 1000:.3f}"

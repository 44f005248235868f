"""A tokenizer of a vocabulary that lies in the file of the weights: characters, or words.

The vocabulary says which tokens there are, not how a text was cut into them: that is assumed, and said.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.bare.sides import SOURCE, TARGET
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.vocabularies_inside import Vocabulary
from vizformer.checkpoints.tokenizers.known_tokens import known_only
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.messages import N_, Message
from vizformer.text import Tokenizer

_MARK = re.compile(r"<[^<>\s]{1,30}>|\[[A-Za-z_]{1,30}\]|</s>|__\w{1,30}__")
_WORDS = {"pad", "sos", "bos", "eos", "unk", "mask", "cls", "sep"}
_ROLES: Mapping[str, tuple[str, ...]] = {
    "pad_token": ("pad", "padding", "blank"),
    "bos_token": ("sos", "bos", "s", "start", "go", "begin"),
    "eos_token": ("eos", "/s", "end", "stop"),
    "unk_token": ("unk", "unknown", "oov"),
    "mask_token": ("mask",),
}
_PIECES = re.compile(r"^(?:##|Ġ|▁)|(?:</w>|@@)$")


@dataclass(frozen=True)
class Inside:
    """The tokenizers that a file's vocabularies make."""

    target: Backend
    source: Backend | None = None  # the source's, where that has a vocabulary of its own
    roles: Mapping[str, int] = field(default_factory=dict)  # ids of special tokens by role, of the target
    notes: tuple[Message, ...] = ()

    @property
    def note(self) -> Message:
        return self.notes[0] if len(self.notes) == 1 else N_("{notes}", notes=self.notes)

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer | None]:
        made = guarded("vocab", lambda: known_only(Tokenizer(self.target)))
        if self.source is None:
            return made, None
        source = self.source
        return made, guarded("vocab", lambda: known_only(Tokenizer(source)))


def inside(found: Sequence[Vocabulary], rows: int, source_rows: int | None) -> Inside | None:
    """The tokenizers for tables of so many rows; None where no vocabulary goes with them."""
    usable = [one for one in found if not _is_of_pieces(one)]
    if source_rows is None:
        fitting = [one for one in usable if one.highest < rows]
        chosen = min(fitting, key=lambda one: rows - one.highest, default=None)
        if chosen is None or not _goes_with(chosen, rows):
            return None
        backend, note = _backend(chosen)
        return Inside(backend, None, _roles(chosen), (note,))
    pair = _pair(usable, rows, source_rows)
    if pair is None:
        return None
    (source, first), (target, second) = (_backend(one) for one in pair)
    return Inside(target, source, _roles(pair[1]), (first, second))


def _goes_with(vocabulary: Vocabulary, rows: int) -> bool:
    """Whether it has about as many tokens as a table has rows; tables are rounded up sometimes."""
    return vocabulary.highest < rows and 2 * len(vocabulary.ids) >= rows


def _pair(found: Sequence[Vocabulary], rows: int, source_rows: int) -> tuple[Vocabulary, Vocabulary] | None:
    """The source's and the target's: by their names, else by their sizes."""
    sources = [one for one in found if _goes_with(one, source_rows) and not _names(one, target=True)]
    targets = [one for one in found if _goes_with(one, rows) and not _names(one, target=False)]
    named = (
        [one for one in sources if _names(one, target=False)],
        [one for one in targets if _names(one, target=True)],
    )
    sources, targets = named[0] or sources, named[1] or targets
    exact = ([o for o in sources if o.highest + 1 == source_rows], [o for o in targets if o.highest + 1 == rows])
    if rows != source_rows and all(len(one) == 1 for one in exact) and exact[0][0] is not exact[1][0]:
        return exact[0][0], exact[1][0]
    if len(sources) == len(targets) == 1 and sources[0] is not targets[0]:
        return sources[0], targets[0]
    return None


def _names(vocabulary: Vocabulary, *, target: bool) -> bool:
    said, other = (TARGET, SOURCE) if target else (SOURCE, TARGET)
    return bool(said.search(vocabulary.name)) and not other.search(vocabulary.name)


def _is_of_pieces(vocabulary: Vocabulary) -> bool:
    """Whether its tokens are pieces of words, which nobody can cut without the rules that are not in it."""
    return sum(bool(_PIECES.search(token)) for token in vocabulary.ids) * 20 > len(vocabulary.ids)


def _is_mark(token: str) -> bool:
    return _MARK.fullmatch(token) is not None or (len(token) > 1 and token.strip("<>[]_").lower() in _WORDS)


def _roles(vocabulary: Vocabulary) -> dict[str, int]:
    marks = {token.strip("<>[]_").lower(): id for token, id in vocabulary.ids.items() if _is_mark(token)}
    return {
        role: next(marks[name] for name in names if name in marks)
        for role, names in _ROLES.items()
        if any(name in marks for name in names)
    }


def _backend(vocabulary: Vocabulary) -> tuple[Backend, Message]:
    ids = dict(vocabulary.ids)
    marks = [token for token in ids if _is_mark(token)]
    plain = [token for token in ids if token not in set(marks)]
    roles = _roles(vocabulary)
    unknown = next((token for token in marks if ids[token] == roles.get("unk_token")), None)
    backend = Backend(models.WordLevel(ids, unk_token=unknown) if unknown else models.WordLevel(ids))
    name = shown(vocabulary.name)
    if all(len(token) == 1 for token in plain):
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
        note = N_("{name} in the file is the vocabulary: every character of a text is a token", name=name)
    else:
        apart = any(len(token) == 1 and not token.isalnum() for token in plain)
        backend.pre_tokenizer = pre_tokenizers.Whitespace() if apart else pre_tokenizers.WhitespaceSplit()
        lower = not any(token != token.lower() for token in plain)
        if lower:
            backend.normalizer = normalizers.Lowercase()
        note = _WORDS_NOTE[apart, lower](name)
    backend.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in marks])
    return backend, note


_WORDS_NOTE = {
    (True, True): lambda name: N_(
        "{name} in the file is the vocabulary: a text is cut at spaces and around punctuation, in small letters",
        name=name,
    ),
    (True, False): lambda name: N_(
        "{name} in the file is the vocabulary: a text is cut at spaces and around punctuation", name=name
    ),
    (False, True): lambda name: N_(
        "{name} in the file is the vocabulary: a text is cut at spaces, in small letters", name=name
    ),
    (False, False): lambda name: N_("{name} in the file is the vocabulary: a text is cut at spaces", name=name),
}


def unused(found: Sequence[Vocabulary], rows: int, source_rows: int | None) -> Message | None:
    """Why no vocabulary of the file is used, where it has some."""
    if not found:
        return None
    first = found[0]
    if _is_of_pieces(first):
        return N_(
            "{name} in the file holds pieces of words, without the rules by which a text is cut into them: it is not used",
            name=shown(first.name),
        )
    return N_(
        "{name} in the file has {n} tokens with ids up to {highest}, which do not go with the tables of embeddings "
        "({rows}): it is not used",
        name=shown(first.name),
        n=len(first.ids),
        highest=first.highest,
        rows=", ".join(str(n) for n in (source_rows, rows) if n is not None),
    )

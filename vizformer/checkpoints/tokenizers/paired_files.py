"""Marian's files: source.spm and target.spm split texts and translations into pieces, vocab.json has the ids of both.

With separate vocabularies (separate_vocabs of tokenizer_config.json) vocab.json has those of the source alone, and
target_vocab.json the target's.  Otherwise:

Each becomes a tokenizer over all of vocab.json, so that an id means the same in both; of what is not among its own
pieces only what consists of characters that these do not have is taken.  `transformers` looks up all such characters in
a row as one piece; where that is unknown, it may be known here in parts.

Source: the files published with OPUS-MT (Tiedemann & Thottingal 2020).
"""

from functools import partial

from tokenizers import AddedToken, models, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.tokenizers import sentencepiece_files as spm
from vizformer.checkpoints.tokenizers.refusals import guarded, no_tokenizer, raise_refusal
from vizformer.checkpoints.tokenizers.special_tokens import bounded, settings, token_text
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies
from vizformer.messages import N_, Message

IDS, SOURCE, TARGET, TARGET_IDS = "vocab.json", "source.spm", "target.spm", "target_vocab.json"
UNKNOWN = 10.0  # how far below the lowest piece SentencePiece puts an unknown character
NEVER = 100_000.0  # and what is not to be taken: the pieces of a text do not add up to as much


def paired(folder: Folder, usual: dict[str, str]) -> Vocabularies:
    """The two tokenizers; `usual` names the special tokens where no file does."""
    said = settings(folder)
    apart = said.get("separate_vocabs") is True
    if not all(folder.has(name) for name in (IDS, SOURCE, TARGET, *([TARGET_IDS] if apart else []))):
        no_tokenizer(
            folder,
            f"{IDS}, {SOURCE}, {TARGET_IDS} and {TARGET}"
            if apart
            else f"tokenizer.json, or {IDS}, {SOURCE} and {TARGET}",
        )
    marks = {role: token_text(said.get(role)) or token for role, token in usual.items()}
    notes: list[Message] = []
    made = []
    for name, of in ((SOURCE, IDS), (TARGET, TARGET_IDS if apart else IDS)):
        ids = _ids(folder, of, marks)
        pieces = spm.read(folder, name)
        if pieces.kind != "unigram":
            raise_refusal(name, f"a vocabulary of the kind {pieces.kind}; supported here is unigram")
        own = {pieces.pieces[id].text: pieces.pieces[id].score for id in pieces.ids(spm.NORMAL)}
        if unknown := own.keys() - ids.keys():
            notes.append(
                N_(
                    "{n} of the pieces of {file} are not in {ids}: words that need them are split into other pieces",
                    n=len(unknown),
                    file=name,
                    ids=of,
                )
            )
        made.append(guarded(name, partial(_build, pieces, own, ids, marks)))
    return Vocabularies(made[0], made[1], tuple(notes), apart)


def _ids(folder: Folder, name: str, marks: dict[str, str]) -> dict[str, int]:
    ids = folder.object(name)
    bounded(ids, name)
    if not all(type(id) is int for id in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise_refusal(name, "its ids are not 0, 1, 2, ...")
    if absent := [token for token in marks.values() if token not in ids]:
        raise_refusal(name, f"it lacks {', '.join(map(shown, absent))}")
    return ids


def _build(pieces: spm.SentencePiece, own: dict[str, float], ids: dict[str, int], marks: dict[str, str]) -> Backend:
    lowest = min(own.values())

    def score(token: str) -> float:
        return own.get(token, lowest - (NEVER if any(character in own for character in token) else UNKNOWN))

    vocabulary = [(token, score(token)) for token in sorted(ids, key=ids.__getitem__)]
    backend = Backend(models.Unigram(vocabulary, unk_id=ids[marks["unk_token"]], byte_fallback=False))
    spm.dress(backend, pieces)
    backend.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in marks.values()])
    languages = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    backend.add_tokens([AddedToken(token, normalized=False, special=False) for token in languages])
    end = marks["eos_token"]
    backend.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, ids[end])])
    return backend

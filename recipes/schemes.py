"""Learning the tokenizers of the lesson "Tokens and embeddings" (`vizformer.text.schemes`).

python -m recipes.schemes cmn.txt assets/lessons/tokens
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, trainers

from recipes.arguments import paths
from recipes.pairs import read_pairs
from recipes.unigram import learn_pieces
from vizformer.text.schemes import LEARNED, UNKNOWN, Pair, Scheme, merge, pre_tokenizer, words_of

SIZE = 8000  # entries of the vocabularies of words and subwords
ALPHABET = 2600  # characters that BPE and WordPiece begin with; rarer ones are unknown
SEEN = 2  # times that a character or a word must occur


def read_texts(file: Path) -> list[str]:
    """Both sides of a file of sentence pairs, each sentence once: as much Chinese as English."""
    pairs = read_pairs(file)
    return [*dict.fromkeys(pair.source for pair in pairs), *dict.fromkeys(pair.target for pair in pairs)]


def train_scheme(scheme: Scheme, texts: Sequence[str], size: int = SIZE) -> Tokenizer:
    """Learns the tokenizer of a scheme from texts.

    Characters have no size to choose: all that occur twice.  WordPiece learns as the library does, by frequency, like
    BPE; its authors merged what raises the likelihood of the text most (Schuster & Nakajima 2012).  What differs is how
    it cuts: from the left, the longest entry that fits (Devlin et al. 2018).
    """
    common: dict[str, Any] = {"special_tokens": [UNKNOWN], "show_progress": False}
    if scheme == "unigram":
        return _unigram(texts, size)
    if scheme in ("word", "character"):
        tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
        trainer: Any = trainers.WordLevelTrainer(vocab_size=size, min_frequency=SEEN, **common)
    elif scheme == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
        tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
        trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=SEEN, limit_alphabet=ALPHABET, **common)
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
        tokenizer.decoder = decoders.WordPiece(prefix="##")
        trainer = trainers.WordPieceTrainer(vocab_size=size, min_frequency=SEEN, limit_alphabet=ALPHABET, **common)
    tokenizer.pre_tokenizer = pre_tokenizer(scheme)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _unigram(texts: Iterable[str], size: int) -> Tokenizer:
    words = Counter("".join(word) for text in texts for word in words_of(text))
    characters: Counter[str] = Counter()
    for word, times in words.items():
        characters.update(dict.fromkeys(word, times))
    known = {character for character, times in characters.items() if times >= SEEN}
    kept = {word: times for word, times in words.items() if set(word) <= known}
    pieces = learn_pieces(kept, size - 1)
    vocabulary = [(UNKNOWN, 0.0), *((piece, round(value, 4)) for piece, value in pieces.items())]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizer("unigram")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    tokenizer.add_special_tokens([UNKNOWN])
    return tokenizer


def count_merges(texts: Iterable[str], table: Sequence[Pair]) -> list[int]:
    """How often each pair of a table stood side by side in the texts when its turn came.

    The merges are repeated in order; only the words that hold the pair are counted anew.
    """
    words = list(Counter(word for text in texts for word in words_of(text)).items())
    where: dict[Pair, set[int]] = {}
    for index, (word, __) in enumerate(words):
        for pair in itertools.pairwise(word):
            where.setdefault(pair, set()).add(index)
    counts = []
    for pair in table:
        count = 0
        for index in where.pop(pair, set()):
            before, times = words[index]
            after = merge(before, pair)
            count += times * (len(before) - len(after))
            words[index] = (after, times)
            for new in itertools.pairwise(after):
                where.setdefault(new, set()).add(index)
        counts.append(count)
    return counts


def write_schemes(file: Path, out: Path) -> None:
    """Learns all tokenizers from a file of sentence pairs and writes them, with the counts of the merges, to `out`."""
    texts = read_texts(file)
    out.mkdir(parents=True, exist_ok=True)
    for scheme in LEARNED:
        tokenizer = train_scheme(scheme, texts)
        tokenizer.save(str(out / f"{scheme}.json"), pretty=False)
        if scheme == "bpe":
            table = [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]
            (out / "bpe-counts.json").write_text(json.dumps(count_merges(texts, table)), encoding="utf-8")


if __name__ == "__main__":
    write_schemes(*paths(2, __doc__))

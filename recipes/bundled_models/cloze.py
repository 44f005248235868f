"""The recipe of `cloze`: an encoder-only model in the style of BERT that fills masked words, in English and Chinese."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from recipes.batches import Row
from recipes.bundled_models.recipe import TextRecipe, train_on_rows
from recipes.corpus import SOURCES, Corpus
from recipes.loop import LoopOptions, Progress
from recipes.vocabulary import BERT_PAD, CLS, MASK, SEP, train_wordpiece
from vizformer.checkpoints.own import Checkpoint
from vizformer.text import Tokenizer
from vizformer.training.loss import IGNORED

CONTEXT = 256
ROW = 96  # tokens of a training row; a tenth of them have the whole context, so that every position is learned
MASKED, N_SPECIAL = 0.15, 5

# BERT's options (Devlin et al. 2018), as small as the data asks for.
CLOZE = TextRecipe(
    name="cloze",
    vocab_size=8000,
    model=dict(
        d_model=256,
        n_heads=8,
        d_ff=1024,
        n_encoder_layers=4,
        max_positions=CONTEXT,
        positions="learned",
        n_segments=2,
        embedding_norm=True,
        norm_eps=1e-12,
        activation="gelu",
        head="transform",
        dropout=0.0,  # a few passes over the data leave nothing to regularise
    ),
    loop=LoopOptions(epochs=6, warmup=2000),
    sources=SOURCES,
)


def learn_tokenizer(corpus: Corpus) -> Tokenizer:
    texts = [paragraph for book in corpus.books.values() for paragraph in book]
    texts += corpus.english
    texts += [pair.source for pair in corpus.pairs] * 2
    return Tokenizer(train_wordpiece(texts, CLOZE.vocab_size))


def masked_row(ids: Sequence[int], segments: Sequence[int], mask_id: int, vocab_size: int, rng: random.Random) -> Row:
    """Hides 15 % of the tokens: of these 80 % become [MASK], 10 % a random token, 10 % stay; all are to be predicted.

    At least one is hidden.  Source: Devlin et al. 2018, section 3.1 and appendix A.1.
    """
    places = [i for i, id in enumerate(ids) if id >= N_SPECIAL]
    hidden = [i for i in places if rng.random() < MASKED] or ([rng.choice(places)] if places else [])
    shown, labels = list(ids), [IGNORED] * len(ids)
    for i in hidden:
        labels[i] = ids[i]
        chance = rng.random()
        if chance < 0.8:
            shown[i] = mask_id
        elif chance < 0.9:
            shown[i] = rng.randrange(N_SPECIAL, vocab_size)
    return Row(shown, labels, list(segments))


class ClozeData:
    """Token ids of the corpus, without special tokens, from which rows are made."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer) -> None:
        self.vocab_size = tokenizer.vocab_size
        self.cls, self.sep, self.mask = (_id(tokenizer, piece) for piece in (CLS, SEP, MASK))

        def encode(texts: Sequence[str]) -> list[list[int]]:
            return [ids[1:-1] for ids in tokenizer.encode_ids(texts)]

        self.books = [encode(book) for book in corpus.books.values()]
        self.english = encode(corpus.english)
        self.pairs = list(
            zip(encode([p.source for p in corpus.pairs]), encode([p.target for p in corpus.pairs]), strict=True)
        )
        self.valid_book = encode(corpus.valid_book)
        self.test_book = encode(corpus.test_book)
        self.held_out_chinese = encode(list(dict.fromkeys(p.source for p in corpus.held_out_pairs)))

    def rows(self, epoch: int) -> list[Row]:
        """Books, sentences, and Chinese sentences: alone or beside their English translation, in either order.

        Two languages side by side: Conneau & Lample 2019, "Cross-lingual Language Model Pretraining", section 3.3.
        """
        rng = random.Random(epoch)
        rows = [self._row(rng, piece) for book in self.books for piece in pieces(book, rng)]
        rows += [self._row(rng, ids) for ids in self.english]
        for chinese, english in self.pairs:
            couple = [chinese, english]
            rng.shuffle(couple)
            rows += [self._row(rng, chinese), self._row(rng, *couple)]
        return rows

    def held_out(self) -> dict[str, list[Row]]:
        """The validation book and Chinese sentences, always with the same masks."""
        rng = random.Random(0)
        return {
            "book": [self._row(rng, piece) for piece in pieces(self.valid_book, rng)],
            "chinese": [self._row(rng, ids) for ids in self.held_out_chinese],
        }

    def test_rows(self) -> list[Row]:
        """The test book, always with the same masks."""
        rng = random.Random(1)
        return [self._row(rng, piece) for piece in pieces(self.test_book, rng)]

    def _row(self, rng: random.Random, *sentences: Sequence[int]) -> Row:
        ids, segments = [self.cls], [0]
        for segment, sentence in enumerate(sentences):
            part = [*sentence[: (CONTEXT - 3) // len(sentences)], self.sep]
            ids, segments = [*ids, *part], [*segments, *[segment] * len(part)]
        return masked_row(ids, segments, self.mask, self.vocab_size, rng)


def pieces(paragraphs: Sequence[Sequence[int]], rng: random.Random) -> list[Sequence[int]]:
    """A book cut into rows of mostly up to ROW tokens, at other places every time."""
    stream = [id for paragraph in paragraphs for id in paragraph]
    cuts: list[Sequence[int]] = []
    start = -rng.randrange(ROW)
    while start < len(stream):
        length = (CONTEXT if rng.random() < 0.1 else ROW) - 2
        if piece := stream[max(start, 0) : max(start + length, 0)]:
            cuts.append(piece)
        start += length
    return cuts


def train_cloze(corpus: Corpus, work: Path, report: Callable[[Progress], None]) -> Checkpoint:
    tokenizer = learn_tokenizer(corpus)
    data = ClozeData(corpus, tokenizer)
    pieces_of = dict(pad_id=BERT_PAD, bos_id=CLS, eos_id=SEP, mask_id=MASK)
    ids = {name: tokenizer.id_of(piece) for name, piece in pieces_of.items()}
    return train_on_rows(CLOZE, tokenizer, ids, data.rows, data.held_out(), work, report)


def _id(tokenizer: Tokenizer, piece: str) -> int:
    found = tokenizer.id_of(piece)
    assert found is not None  # train_wordpiece made it
    return found

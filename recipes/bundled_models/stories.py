"""The recipe of `stories`: a decoder-only model in the style of LLaMA that continues English and Chinese text."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import processors

from recipes.batches import Row
from recipes.bundled_models.recipe import TextRecipe, train_on_rows
from recipes.corpus import SOURCES, Corpus
from recipes.loop import LoopOptions, Progress
from recipes.vocabulary import BOS, EOS, PAD, train_bpe
from vizformer.checkpoints.own import Checkpoint
from vizformer.text import Tokenizer
from vizformer.training.loss import IGNORED

CONTEXT = 512
CHINESE_TIMES = 2  # each Chinese sentence is read this often per epoch: there are few of them
N_REPEATED = 5000  # rows of repeated random tokens per epoch

# LLaMA's options (Touvron et al. 2023) with grouped-query attention, as small as the data asks for.
STORIES = TextRecipe(
    name="stories",
    vocab_size=6000,
    model=dict(
        d_model=256,
        n_heads=8,
        n_kv_heads=4,
        d_ff=640,
        n_decoder_layers=5,
        max_positions=CONTEXT,
        positions="rope",
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        activation="silu",
        feedforward="gated",
        bias=False,
        dropout=0.0,  # a few passes over the data leave nothing to regularise
    ),
    loop=LoopOptions(epochs=6, warmup=1000),
    sources=SOURCES,
)


def learn_tokenizer(corpus: Corpus) -> Tokenizer:
    """Byte-level BPE; a text begins with the start mark and has no end mark, so that it can go on."""
    texts = [paragraph for book in corpus.books.values() for paragraph in book]
    texts += corpus.english
    texts += [pair.source for pair in corpus.pairs] * CHINESE_TIMES
    library = train_bpe(texts, STORIES.vocab_size)
    start = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, library.token_to_id(BOS))])
    library.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), start])
    return Tokenizer(library)


def next_token_row(ids: Sequence[int], first: int = 0) -> Row:
    """Every position predicts the token that follows; only tokens from index `first` on are asked for."""
    labels = [IGNORED if i + 1 < first else ids[i + 1] for i in range(len(ids) - 1)]
    return Row(ids[:-1], labels, [0] * len(labels))


def book_rows(paragraphs: Sequence[Sequence[int]], bos: int, skip: int = 0) -> list[Row]:
    """A book in rows of up to the context; each begins with the start mark and a paragraph's first word.

    A paragraph that is cut off at the end of a row begins the next one, unless it fills a row by itself.
    """
    rows, row, index = [], [bos], skip
    while index < len(paragraphs):
        row += paragraphs[index]
        index += 1
        if len(row) > CONTEXT or index == len(paragraphs):
            cut = len(row) > CONTEXT + 1 and len(paragraphs[index - 1]) < CONTEXT // 2
            rows.append(next_token_row(row[: CONTEXT + 1]))
            row = [bos]
            index -= cut and index < len(paragraphs)
    return rows


def repeated_rows(count: int, vocab_size: int, common: Sequence[int], bos: int, rng: random.Random) -> list[Row]:
    """Random tokens, again and again: nothing but looking back at what followed last time can predict them.

    This is what an induction head does (Olsson et al. 2022).  A third of the rows each are drawn from few, some and all
    tokens: rows from all tokens alone take far longer.  In the one run of the whole recipe (5,854 updates) a previous-token
    head formed and an induction head did not: see the card of `stories`.  Only tokens that have been seen are asked for.
    """
    few, some, every = common[:64], common[:512], range(3, vocab_size)
    rows = []
    for index in range(count):
        pool = (few, some, every)[index % 3]
        period = rng.randrange(4, 32)
        unit = [rng.choice(pool) for _ in range(period)]
        length = rng.randrange(2 * period, 128)
        rows.append(next_token_row([bos, *(unit * (length // period + 1))[:length]], first=1 + period))
    return rows


def story_rows(corpus: Corpus, tokenizer: Tokenizer) -> Callable[[int], list[Row]]:
    """The rows of an epoch: every book from another paragraph on, every sentence, and repeated random tokens."""
    bos, eos = tokenizer.id_of(BOS), tokenizer.id_of(EOS)
    assert bos is not None
    assert eos is not None
    books = [_encode_paragraphs(tokenizer, book) for book in corpus.books.values()]
    sentences = [[*ids, eos] for ids in tokenizer.encode_ids(corpus.english)]
    chinese = [[*ids, eos] for ids in tokenizer.encode_ids(list(dict.fromkeys(p.source for p in corpus.pairs)))]
    counts = Counter(id for row in sentences for id in row[1:-1])
    ranked = [id for id, _ in counts.most_common(2000)]
    common = ranked[len(ranked) // 10 :: 3]  # words, rather than marks and parts of words
    singles = [next_token_row(ids[: CONTEXT + 1]) for ids in [*sentences, *chinese * CHINESE_TIMES]]

    def rows(epoch: int) -> list[Row]:
        rng = random.Random(epoch)
        stories = [row for book in books for row in book_rows(book, bos, skip=rng.randrange(min(8, len(book))))]
        return [*stories, *singles, *repeated_rows(N_REPEATED, tokenizer.vocab_size, common, bos, rng)]

    return rows


def held_out_rows(corpus: Corpus, tokenizer: Tokenizer) -> dict[str, list[Row]]:
    """The validation book and Chinese sentences."""
    bos, eos = tokenizer.id_of(BOS), tokenizer.id_of(EOS)
    assert bos is not None
    assert eos is not None
    chinese = list(dict.fromkeys(pair.source for pair in corpus.held_out_pairs))
    return {
        "book": book_rows(_encode_paragraphs(tokenizer, corpus.valid_book), bos),
        "chinese": [next_token_row([*ids, eos]) for ids in tokenizer.encode_ids(chinese)],
    }


def _encode_paragraphs(tokenizer: Tokenizer, paragraphs: Sequence[str]) -> list[list[int]]:
    """Ids without the start mark; each paragraph ends with a line break."""
    return [ids[1:] for ids in tokenizer.encode_ids([paragraph + "\n" for paragraph in paragraphs])]


def train_stories(
    corpus: Corpus, work: Path, report: Callable[[Progress], None], recipe: TextRecipe | None = None
) -> Checkpoint:
    """The model of `recipe` (None: `STORIES`), with the vocabulary and the rows of `stories`."""
    tokenizer = learn_tokenizer(corpus)
    ids = {name: tokenizer.id_of(piece) for name, piece in dict(pad_id=PAD, bos_id=BOS, eos_id=EOS).items()}
    rows, valid = story_rows(corpus, tokenizer), held_out_rows(corpus, tokenizer)
    return train_on_rows(recipe or STORIES, tokenizer, ids, rows, valid, work, report)

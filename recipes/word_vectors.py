"""A table of static word vectors, learned by skip-gram with negative sampling (word2vec), as the lesson Tokens shows it.

    python -m recipes.word_vectors DATA assets/lessons/tokens/word_vectors.safetensors   # minutes, one core

DATA is the folder with books.txt, cmn.txt and fra.txt.  A word is a run of English letters, in lower case, or a single
Chinese character.  For every word c and every word o near it, the table learns to tell o from words drawn at random:

    loss = -log sigmoid(v_c . u_o) - sum over k drawn words r of log sigmoid(-v_c . u_r)

Kept are the rows v.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality", section 2.2
(the loss; words are drawn by their frequency to the power of 3/4) and 2.3 (frequent words are left out at random).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from recipes.arguments import paths
from recipes.corpus import Corpus, read_corpus
from vizformer.analysis.vectors.embeddings import plain_words
from vizformer.checkpoints.files.weights import write_weights


@dataclass(frozen=True, kw_only=True)
class WordVectorRecipe:
    """What decides the table.

    Attributes:
        width: numbers of a row.
        least: a word has a row if it occurs so often.
        window: words to each side that count as near.
        drawn: words drawn at random for each pair.
        subsampling: a word that makes up a share f of the text is kept with probability sqrt(subsampling / f).
        batch: pairs of an update.
        learning_rate: of the first epoch; it falls linearly, epoch by epoch.
    """

    width: int = 48
    least: int = 40
    window: int = 4
    drawn: int = 5
    subsampling: float = 5e-4
    epochs: int = 5
    batch: int = 8192
    learning_rate: float = 0.005
    seed: int = 0


RECIPE = WordVectorRecipe()
SHARED = 256  # words drawn for a batch


def texts_of(corpus: Corpus) -> list[str]:
    """Paragraphs and sentences, English and Chinese."""
    paragraphs = [paragraph for book in corpus.books.values() for paragraph in book]
    return [*paragraphs, *corpus.english, *dict.fromkeys(pair.source for pair in corpus.pairs)]


def near_pairs(text: Int[ndarray, " n"], window: int) -> Int[ndarray, "n_pairs 2"]:
    """Every word of a text with every word at most `window` places from it."""
    pairs = []
    for distance in range(1, min(window, len(text) - 1) + 1):
        one, other = text[:-distance], text[distance:]
        pairs += [np.stack([one, other], 1), np.stack([other, one], 1)]
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=text.dtype)


def skip_gram_loss(
    v: Float[Tensor, "batch width"], near: Float[Tensor, "batch width"], drawn: Float[Tensor, "n_drawn width"], k: int
) -> Float[Tensor, ""]:
    """The mean loss of pairs.

    The pairs of a batch share the words that were drawn, which is quicker: k times the mean over all of them stands for
    the sum over k drawn for one pair alone, and has the same expectation.

    Args:
        v, near: the row of every pair's word, and that of the word near it.
        drawn: the rows of words drawn at random.
        k: words drawn for each pair, of the formula.
    """
    right = F.logsigmoid((v * near).sum(-1))
    wrong = F.logsigmoid(-(v @ drawn.T)).mean(-1)
    return -(right + k * wrong).mean()


def train_word_vectors(
    texts: Sequence[str], recipe: WordVectorRecipe = RECIPE, say: Callable[[str], None] = print
) -> tuple[list[str], list[int], Float[Tensor, "n_words width"]]:
    """The words, the most frequent first, how often each occurs, and their rows."""
    cut = [plain_words(text) for text in texts]
    counts = Counter(word for words in cut for word in words)
    words = [word for word, count in counts.most_common() if count >= recipe.least]
    rows = {word: row for row, word in enumerate(words)}
    frequency = np.array([counts[word] for word in words], dtype=np.float64)
    share = frequency / frequency.sum()
    kept = np.minimum(1.0, np.sqrt(recipe.subsampling / share))
    ids = [np.array([rows[word] for word in text if word in rows], dtype=np.int64) for text in cut]
    rng, noise = np.random.default_rng(recipe.seed), torch.tensor(frequency**0.75)
    torch.manual_seed(recipe.seed)
    centre, context = nn.Embedding(len(words), recipe.width), nn.Embedding(len(words), recipe.width)
    nn.init.uniform_(centre.weight, -0.5 / recipe.width, 0.5 / recipe.width)
    nn.init.zeros_(context.weight)
    optimizer = torch.optim.Adam([*centre.parameters(), *context.parameters()], lr=recipe.learning_rate)
    for epoch in range(recipe.epochs):
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * (1 - epoch / recipe.epochs)
        chosen = [text[rng.random(len(text)) < kept[text]] for text in ids]
        pairs = np.concatenate([near_pairs(text, recipe.window) for text in chosen])
        rng.shuffle(pairs)
        total = 0.0
        starts = range(0, len(pairs), recipe.batch)
        for start in starts:
            batch = torch.from_numpy(pairs[start : start + recipe.batch])
            drawn = torch.multinomial(noise, SHARED, replacement=True)
            loss = skip_gram_loss(centre(batch[:, 0]), context(batch[:, 1]), context(drawn), recipe.drawn)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.item()
        say(f"epoch {epoch + 1}/{recipe.epochs}: {len(pairs):,} pairs, loss {total / len(starts):.4f}")
    return words, [counts[word] for word in words], centre.weight.detach()


def main(data: Path, path: Path) -> None:
    torch.set_num_threads(1)
    words, counts, vectors = train_word_vectors(texts_of(read_corpus(data)))
    notes = {name: str(value) for name, value in asdict(RECIPE).items()}
    notes |= {"words": "\n".join(words), "counts": " ".join(map(str, counts))}
    write_weights({"vectors": vectors.half().contiguous()}, path, notes)


if __name__ == "__main__":
    main(*paths(2, __doc__))

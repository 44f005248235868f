"""Static word vectors: the search in a table, the loss that makes one, and what the bundled one has learned."""

import numpy as np
import pytest
import torch

from recipes.word_vectors import WordVectorRecipe, near_pairs, skip_gram_loss, train_word_vectors
from vizformer.analysis.vectors.embeddings import WordVectors, plain_words, read_word_vectors
from vizformer.assets import asset


@pytest.fixture(scope="module")
def bundled() -> WordVectors:
    return read_word_vectors(asset("lessons", "tokens", "word_vectors.safetensors"))


def test_words_are_english_runs_and_single_chinese_characters() -> None:
    assert plain_words("Don’t eat 苹果, Tom's 3 cats!") == ["don't", "eat", "苹", "果", "tom's", "cats"]
    assert plain_words("👩‍👩‍👧 123 ...") == []


def test_the_nearest_rows_of_a_table_set_by_hand() -> None:
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]], dtype=np.float32)
    found = WordVectors(("a", "b", "c", "d"), (4, 3, 2, 1), rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert [word for word, __ in found.nearest("a", 2)] == ["b", "c"]
    assert found.nearest("a", 1)[0][1] == pytest.approx(0.9 / np.hypot(0.9, 0.1))


def test_the_bundled_table_has_unit_rows_about_their_mean(bundled: WordVectors) -> None:
    assert len(bundled.words) == len(bundled.counts) == len(bundled.unit) > 3000
    assert list(bundled.counts) == sorted(bundled.counts, reverse=True)
    np.testing.assert_allclose(np.linalg.norm(bundled.unit, axis=1), 1, rtol=1e-5)


def test_words_that_are_used_alike_are_near_each_other_in_the_bundled_table(bundled: WordVectors) -> None:
    for word, alike in (("three", "five"), ("猫", "狗"), ("king", "queen"), ("red", "white")):
        cosines = bundled.unit @ bundled.unit[bundled.rows[word]]
        assert (cosines > cosines[bundled.rows[alike]]).mean() < 0.01, (word, alike)  # among the nearest of a hundred
    brother, he, she = (bundled.unit[bundled.rows[word]] for word in ("brother", "he", "she"))
    near = np.argsort(-(bundled.unit @ (brother - he + she)))[:8]
    assert "sister" in [bundled.words[row] for row in near]


def test_every_word_is_paired_with_those_near_it_on_both_sides() -> None:
    pairs = {tuple(pair) for pair in near_pairs(np.array([0, 1, 2, 3]), 2).tolist()}
    assert pairs == {(i, j) for i in range(4) for j in range(4) if i != j and abs(i - j) <= 2}
    assert near_pairs(np.array([7]), 2).shape == (0, 2)


def test_the_loss_is_the_formula_of_the_paper() -> None:
    torch.manual_seed(0)
    v, near, drawn, k = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4), 2
    expected = 0.0
    for row in range(3):
        expected -= torch.log(torch.sigmoid(v[row] @ near[row]))
        expected -= k * torch.stack([torch.log(torch.sigmoid(-(v[row] @ one))) for one in drawn]).mean()
    torch.testing.assert_close(skip_gram_loss(v, near, drawn, k), expected / 3)


@pytest.mark.sweep
def test_training_brings_words_of_the_same_use_together() -> None:
    texts = [f"{who} {deed} here" for who in ("tom", "mary") for deed in ("sings", "sleeps")] * 60
    texts += [f"the {what} is {how}" for what in ("door", "wall") for how in ("red", "blue")] * 60
    recipe = WordVectorRecipe(width=8, least=5, window=2, subsampling=1.0, epochs=20, batch=64, learning_rate=0.02)
    words, counts, vectors = train_word_vectors(texts, recipe, lambda line: None)
    assert counts[words.index("tom")] == 120
    cosine = torch.nn.functional.cosine_similarity
    tom, mary, door = (vectors[words.index(word)] for word in ("tom", "mary", "door"))
    assert cosine(tom, mary, dim=0) > cosine(tom, door, dim=0) + 0.3

"""The data of `stories` and `cloze`: what is held out, what a row asks for; a tiny run learns and is measured."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recipes.batches import Row, row_batches
from recipes.bundled_models import cloze, evaluate, stories, train
from recipes.bundled_models.text_measures import windows
from recipes.corpus import TEST_BOOK, VALID_BOOK, Corpus, find_file, read_corpus
from recipes.loss import token_loss
from recipes.pairs import sentence_key
from tests import tiny
from tests.recipes.test_bundled_models import run
from vizformer.checkpoints import Checkpoint
from vizformer.errors import VizformerError
from vizformer.training.loss import IGNORED

STORY = "Once upon a time there was a cat. The cat had a hat, and the hat had a cat.\n\nThe end was near, said the cat."
ENGLISH = [f"I have {n} cats and {m} dogs." for n in range(2, 12) for m in range(2, 12)]
CHINESE = [f"我有{n}只猫和{m}只狗。" for n in "二三四五六七八九十" for m in "二三四五六七八九十百"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder laid out as the real data, a few kilobytes of it."""
    folder = tmp_path_factory.mktemp("data")
    titles = ["First", VALID_BOOK, TEST_BOOK, "Last"]
    top = "## CHAPTER I\n\n-----"
    books = "\n\n".join(f"# Title: {title}\n\n{top}\n\n{STORY}\n\n{title} is a book." for title in titles)
    (folder / "deeper").mkdir()
    (folder / "deeper" / "books.txt").write_text(books, encoding="utf-8")
    pairs = [f"{e}\t{c}\tby someone" for e, c in zip(ENGLISH, CHINESE, strict=False)]
    (folder / "cmn.txt").write_text("\n".join(pairs), encoding="utf-8")
    french = [f"{e}\tJ'ai des chats {i}." for i, e in enumerate(ENGLISH)]
    (folder / "fra.txt").write_text("\n".join(french), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(data: Path) -> Corpus:
    return read_corpus(data)


def test_whole_books_and_sentences_are_held_out(corpus: Corpus) -> None:
    assert list(corpus.books) == ["First", "Last"]
    assert corpus.books["First"] == [*STORY.split("\n\n"), "First is a book."]  # no heading, no rule
    assert corpus.test_book[-1] == f"{TEST_BOOK} is a book."
    trained = {sentence_key(text) for pair in corpus.pairs for text in (pair.source, pair.target)}
    trained |= {sentence_key(text) for text in corpus.english}
    held_out = {sentence_key(text) for pair in corpus.held_out_pairs for text in (pair.source, pair.target)}
    assert held_out
    assert not trained & held_out


def test_missing_files_are_named(tmp_path: Path, data: Path) -> None:
    with pytest.raises(VizformerError, match=r"no cmn\.txt in"):
        find_file(tmp_path, "cmn.txt")
    assert find_file(data, "books.txt") == data / "deeper" / "books.txt"
    (tmp_path / "books.txt").write_text("# Title: Alone\n\nOnce.", encoding="utf-8")
    with pytest.raises(VizformerError, match="lacks the book"):
        read_corpus(tmp_path)


def test_book_rows_ask_for_every_paragraph() -> None:
    paragraphs = [[10 * p + i for i in range(9)] for p in range(1, 200)]
    rows = stories.book_rows(paragraphs, bos=1)
    asked = {label for row in rows for label in row.labels}
    assert asked == {id for paragraph in paragraphs for id in paragraph}
    for row in rows:
        assert row.ids[0] == 1
        assert len(row.ids) <= stories.CONTEXT
        assert list(row.ids[1:]) == list(row.labels[:-1])
        assert row.ids[1] % 10 == 0  # begins with a paragraph
    giant = stories.book_rows([[5] * 2000, [6] * 10], bos=1)  # longer than the context: cut, and over
    assert [len(row.ids) for row in giant] == [stories.CONTEXT, 10]


def test_repeated_rows_ask_only_for_what_was_seen() -> None:
    rows = stories.repeated_rows(60, 6000, list(range(10, 900)), 1, random.Random(0))
    for index, row in enumerate(rows):
        period = next(i for i, label in enumerate(row.labels) if label != IGNORED)
        assert 4 <= period < 32
        for i in range(period, len(row.labels)):
            assert row.labels[i] == row.ids[i + 1 - period]
        if index % 3 == 0:
            assert set(row.ids[1:]) <= set(range(10, 74))


def test_masked_rows_hide_fifteen_percent() -> None:
    rng = random.Random(0)
    ids = [2, *range(100, 160), 3]
    hidden = masked = kept = 0
    for _ in range(400):
        row = cloze.masked_row(ids, [0] * len(ids), 4, 8000, rng)
        for shown, label, true in zip(row.ids, row.labels, ids, strict=True):
            if label == IGNORED:
                assert shown == true
                continue
            assert label == true
            assert true >= 100
            hidden, masked, kept = hidden + 1, masked + (shown == 4), kept + (shown == true)
    assert hidden / (400 * 60) == pytest.approx(0.15, abs=0.01)
    assert masked / hidden == pytest.approx(0.8, abs=0.03)
    assert kept / hidden == pytest.approx(0.1, abs=0.03)
    assert [label for label in cloze.masked_row([2, 77, 3], [0] * 3, 4, 100, rng).labels if label != IGNORED] == [77]


def test_rows_of_cloze_have_two_segments(corpus: Corpus) -> None:
    data = cloze.ClozeData(corpus, cloze.learn_tokenizer(corpus))
    rows = data.rows(0)
    assert rows == data.rows(0)
    assert rows != data.rows(1)
    assert {segment for row in rows for segment in row.segments} == {0, 1}
    for row in rows:
        ends = [i for i, id in enumerate(row.ids) if id == data.sep]
        assert row.segments == [sum(i > end for end in ends) for i in range(len(row.ids))]


def test_batches_hold_every_row_once_within_the_limit() -> None:
    rng = random.Random(0)
    rows = [Row([i] * n, [i] * n, [0] * n) for i in range(50) for n in [rng.randrange(1, 30)]]
    batches = list(row_batches(rows, tokens_per_batch=64, pad_id=99, seed=3))
    seen = sorted(int(row[0]) for batch in batches for row in batch.ids)
    assert seen == list(range(50))
    for batch in batches:
        assert batch.ids.numel() <= 64
        assert torch.equal(batch.padding, batch.ids == 99)
        assert torch.equal(batch.labels == IGNORED, batch.padding)
    again = list(row_batches(rows, tokens_per_batch=64, pad_id=99, seed=3))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(batches, again, strict=True))


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-only"])
def test_the_loss_of_a_batch_is_that_of_its_rows(architecture: str) -> None:
    """Padding and neighbours in the batch change nothing."""
    model = tiny.model(architecture, **(tiny.LLAMA if architecture == "decoder-only" else tiny.BERT))
    rng = random.Random(0)
    rows = [
        Row([rng.randrange(3, 29) for _ in range(n)], [rng.choice([IGNORED, 5, 7]) for _ in range(n)], [n % 2] * n)
        for n in (3, 9, 6)
    ]
    together, count = token_loss(
        model, next(row_batches(rows, tokens_per_batch=999, pad_id=0, seed=None)), autocast=False, reduction="sum"
    )
    alone = 0.0
    for row in rows:
        ids, labels, segments = (torch.tensor([part]) for part in row)
        logits = model(ids, segments=segments)
        own = torch.nn.functional.cross_entropy(logits[0], labels[0], reduction="sum", ignore_index=IGNORED)
        alone += own.item()
    assert count == sum(label != IGNORED for row in rows for label in row.labels)
    assert together.item() == pytest.approx(alone, rel=1e-5)


def test_windows_ask_for_every_byte_once(corpus: Corpus) -> None:
    tokenizer = stories.learn_tokenizer(corpus)
    model = tiny.model("decoder-only", vocab_size=tokenizer.vocab_size)
    checkpoint = Checkpoint("tiny", model, tokenizer)
    text = STORY * 60
    rows = windows(checkpoint, text)
    assert len(rows) > 1
    assert tokenizer.decode([label for row in rows for label in row.labels]) == text


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["stories", "cloze"])
def test_train_evaluate_and_the_card(name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands themselves, with a recipe that takes seconds."""
    module = {"stories": stories, "cloze": cloze}[name]
    full = getattr(module, name.upper())
    stack, layers = ("n_encoder_layers", 2) if name == "cloze" else ("n_decoder_layers", 2)
    small = replace(
        full,
        vocab_size=400,
        loop=replace(full.loop, epochs=2, warmup=20),
        tokens_per_batch=512,
        model={**full.model, "d_model": 32, "d_ff": 48, stack: layers},
    )
    monkeypatch.setattr(module, name.upper(), small)
    monkeypatch.setattr(stories, "N_REPEATED", 5)
    out, work = tmp_path / name, tmp_path / "work"
    said = run(train.main, name, "--data", data, "--out", out, "--work", work)
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in said.splitlines() if line.startswith("epoch")]
    assert losses[-1] < losses[0]
    assert math.isfinite(losses[-1])
    run(evaluate.main, out, "--data", data)
    results = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    card = (out / "README.md").read_text(encoding="utf-8")
    if name != "cloze":
        assert str(results["book"]["bits_per_byte"]) in card
        assert 0 < results["book"]["bits_per_byte"] < 12
    else:
        assert f"{results['book']['accuracy']:.1%}" in card
        assert f"{results['book']['bigram']['perplexity']:g}" in card
    assert f"python -m recipes.bundled_models.train {name} --data DATA" in card

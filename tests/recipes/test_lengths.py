"""The tiny models of the lesson Positions: what they learn from, how they are measured, what is bundled."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from recipes.bundled_models import lengths, train
from recipes.corpus import TEST_BOOK, VALID_BOOK
from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.errors import VizformerError

SHORT = dataclasses.replace(
    lengths.LENGTHS, updates=2, books=3, chinese=1, loop=dataclasses.replace(lengths.LENGTHS.loop, epochs=2)
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    books = [
        f"# Title: {title}\n\n" + "\n\n".join(f"{title} says {i} things of the house." for i in range(40))
        for title in ("Alice", VALID_BOOK, TEST_BOOK)
    ]
    (folder / "books.txt").write_text("\n\n".join(books), encoding="utf-8")
    pairs = [f"This is number {i}.\t这是第{i}个句子。\tby" for i in range(800)]
    (folder / "cmn.txt").write_text("\n".join(pairs), encoding="utf-8")
    return folder


def test_a_token_is_a_byte() -> None:
    tokenizer = lengths.byte_tokenizer()
    assert tokenizer.vocab_size == 256
    for text in ("我 a\n\tbé", "".join(map(chr, range(0x250)))):
        assert [token.id for token in tokenizer.encode(text)] == list(text.encode())
        assert tokenizer.decode(list(text.encode())) == text


def test_held_out_texts_are_not_learned_from(data: Path) -> None:
    texts = lengths.read_texts(data)
    assert b"Alice says 3 things" in texts.books
    for title in (TEST_BOOK, VALID_BOOK):
        assert title.encode() not in texts.books
    assert TEST_BOOK.encode() in texts.held_out["book"]
    held_out, learned = (set(text.decode().split("\n")) for text in (texts.held_out["chinese"], texts.chinese))
    assert len(held_out) == 20
    assert not held_out & learned
    assert len(held_out | learned) == 800


def test_every_scheme_reads_the_same_windows(data: Path) -> None:
    texts = lengths.read_texts(data)
    first, again = (list(lengths.window_batches(texts, SHORT, 1)) for _ in range(2))
    assert len(first) == SHORT.updates
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.ids, other.ids)
        assert one.ids.shape == (4, lengths.TRAINED)
        assert torch.equal(one.ids[:, 1:], one.labels[:, :-1])
    assert not torch.equal(first[0].ids, next(lengths.window_batches(texts, SHORT, 2)).ids)
    assert bytes(first[0].ids[0].tolist()) in texts.books
    assert bytes(first[0].ids[-1].tolist()) in texts.chinese


def test_loss_by_position_is_the_mean_over_windows() -> None:
    model = load(asset("lessons", "positions", "alibi")).model
    text = (b"The king went into the house and sat down. " * 20)[: 257 + 64]
    found = lengths.loss_by_position(model, text)
    rows = torch.tensor([list(text[:257]), list(text[64:])])
    with torch.inference_mode():
        logits = model(rows[:, :-1])
    for position in (0, 63, 64, 255):
        wanted = -torch.stack([logits[r, position].log_softmax(-1)[rows[r, position + 1]] for r in range(2)]).mean()
        assert found[position] == pytest.approx(float(wanted), abs=1e-4)
    learned = load(asset("lessons", "positions", "learned")).model
    assert len(lengths.loss_by_position(learned, text)) == lengths.TRAINED
    with pytest.raises(VizformerError, match="256 bytes; 257 are needed"):
        lengths.loss_by_position(model, text[:256])


@pytest.mark.slow
@pytest.mark.sweep
def test_the_command_trains_measures_and_goes_on_where_it_was(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths, "LENGTHS", SHORT)
    said: list[str] = []
    schemes = ("alibi", "learned")
    lengths.train_lengths(data, tmp_path / "out", tmp_path / "work", said.append, schemes, SHORT)
    assert any(line.startswith("alibi: update 4") for line in said)
    notes = lengths.measured(tmp_path / "out")
    assert notes["loss"].keys() == {"book", "chinese"}
    assert [len(notes["loss"]["book"][scheme]) for scheme in schemes] == [256, 64]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    near = notes["loss"]["book"]["alibi"][32:64]
    assert f"| alibi | {sum(near) / 32:.3f} |" in card
    assert "| learned |" in card
    before = load(tmp_path / "out" / "alibi").model.state_dict()
    said.clear()
    lengths.train_lengths(data, tmp_path / "out", tmp_path / "work", said.append, schemes, SHORT)
    assert not any("update" in line for line in said)  # finished already
    assert all(torch.equal(t, before[n]) for n, t in load(tmp_path / "out" / "alibi").model.state_dict().items())
    answer = CliRunner().invoke(train.main, ["lengths", "--data", str(tmp_path / "nowhere"), "--threads", "1"])
    assert answer.exit_code == 1
    assert "There is no file or folder" in answer.output


def test_what_is_bundled_is_what_was_measured() -> None:
    folder = asset("lessons", "positions")
    notes = lengths.measured(folder)
    assert notes["loss"]["book"].keys() == set(lengths.SCHEMES)
    card = (folder / "README.md").read_text(encoding="utf-8")
    for scheme in lengths.SCHEMES:
        checkpoint = load(folder / scheme)
        assert checkpoint.model.config == lengths.config_of(scheme)
        curve = notes["loss"]["book"][scheme]
        assert len(curve) == checkpoint.model.config.max_positions
        assert f"| {scheme} | {sum(curve[32:64]) / 32:.3f} |" in card
        passage = torch.tensor([list(notes["passages"]["book"].encode()[:257])])
        mean = float(lengths.losses(checkpoint.model, passage)[0, : lengths.TRAINED].mean())
        assert mean < math.log(256) / 2.5  # it has learned
    size = sum(path.stat().st_size for path in folder.rglob("*"))
    assert size < 3e6

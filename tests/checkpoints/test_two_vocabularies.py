"""A vocabulary for each stack: texts, targets, rows and caches keep to their own."""

from pathlib import Path

import pytest
import torch

from recipes.translate import translate_all
from tests import tiny
from tests.checkpoints.test_state_dict import saved
from tests.parity.test_two_vocabularies import SAID, SOURCES, TARGETS, Translator, written
from vizformer.analysis.vectors.contextual import contexts, shared
from vizformer.analysis.vectors.embeddings import directions, lookup, norms, with_scale
from vizformer.checkpoints import Checkpoint, describe, inspect, load, save
from vizformer.checkpoints.tensors import memory
from vizformer.errors import CheckpointError, TokenizerError, TraceError
from vizformer.generation import greedy_batch

TEXT, TARGET = "我有一只猫。", "I have a cat."


def ids_of(tokens: tuple) -> list[int]:
    return [token.id for token in tokens]


# --- texts and ids --------------------------------------------------------------------------------------------------


def test_each_stack_reads_with_its_own_tokenizer() -> None:
    checkpoint = tiny.two_vocabularies()
    source, target = tiny.source_tokenizer(), tiny.tokenizer()
    trace = checkpoint.trace(TEXT, target=TARGET)
    assert ids_of(trace.tokens["encoder"]) == ids_of(source.encode(TEXT))
    assert ids_of(trace.tokens["decoder"]) == [1, *ids_of(target.encode(TARGET, special=False))]
    assert trace.tokens["encoder"][0].piece == "[CLS]"  # its own marks
    assert trace.tokens["decoder"][0].piece == "<s>"
    assert trace.logits.shape[1] == target.vocab_size
    again = checkpoint.trace(ids=ids_of(trace.tokens["encoder"]), target_ids=ids_of(trace.tokens["decoder"]))
    assert torch.equal(trace.logits, again.logits)
    assert [t.piece for t in again.tokens["encoder"]] == [t.piece for t in trace.tokens["encoder"]]


def test_ids_are_held_against_their_own_vocabulary() -> None:
    checkpoint = tiny.two_vocabularies()
    last = tiny.source_tokenizer().vocab_size - 1
    assert last + 1 < tiny.tokenizer().vocab_size
    with pytest.raises(TokenizerError, match=f"Token id {last + 1} is not in the vocabulary: ids go from 0 to {last}"):
        checkpoint.trace(ids=[last + 1], target_ids=[1])
    assert checkpoint.trace(ids=[last], target_ids=[1, last + 1]).tokens["decoder"][1].id == last + 1


def test_what_it_writes_is_the_targets() -> None:
    checkpoint = tiny.two_vocabularies()
    prompt, beginning = checkpoint.opening(TEXT, "I")
    assert ids_of(prompt) == ids_of(tiny.source_tokenizer().encode(TEXT))
    assert ids_of(beginning) == [1, *ids_of(tiny.tokenizer().encode("I", special=False))]
    found = checkpoint.generate(TEXT, max_new=5)
    assert found.text == tiny.tokenizer().decode(list(found.ids)).strip()
    trace = checkpoint.trace(TEXT)
    assert ids_of(trace.tokens["decoder"])[1:6] == [id for id in found.ids if id != 2][:5]
    text, best = checkpoint.beam(TEXT, width=2, max_new=3)[0]
    assert text == tiny.tokenizer().decode(list(best.ids)).strip()


def test_many_sentences_at_once() -> None:
    checkpoint = tiny.two_vocabularies(pad_id=300)  # the source has no such row
    texts = [TEXT, "猫", "你好吗？"]
    alone = [translate_all(checkpoint, [text], max_new=6)[0] for text in texts]
    assert translate_all(checkpoint, texts, max_new=6) == alone
    rows = [ids_of(checkpoint.encode(text)) for text in texts]
    one_by_one = [greedy_batch(checkpoint.model, [row], max_new=6)[0] for row in rows]
    assert greedy_batch(checkpoint.model, rows, max_new=6) == one_by_one


def test_a_table_of_its_own_with_the_same_vocabulary() -> None:
    """Sizes may be the same, and one tokenizer enough; more rows than tokens have names on either side."""
    n = tiny.tokenizer().vocab_size
    model = tiny.model(vocab_size=n, source_vocab_size=n + 3)
    checkpoint = Checkpoint("tiny", model, tiny.tokenizer())
    assert checkpoint.tokenizer_of("encoder").tokens([n + 2])[0].piece == f"[{n + 2}]"
    with pytest.raises(TokenizerError):
        checkpoint.tokenizer_of("decoder").tokens([n + 2])
    assert ids_of(checkpoint.encode(TARGET)) == ids_of(tiny.tokenizer().encode(TARGET))


def test_no_tokenizer_for_a_table_that_is_not_there() -> None:
    with pytest.raises(CheckpointError, match=r"one table of embeddings for both stacks.*Leave out source_tokenizer"):
        Checkpoint("tiny", tiny.model(), tiny.tokenizer(), source_tokenizer=tiny.source_tokenizer())


def test_the_key_tells_tokenizers_apart() -> None:
    model = tiny.two_vocabularies().model
    keys = {
        Checkpoint("tiny", model, tiny.tokenizer(), source_tokenizer=source).key
        for source in (tiny.source_tokenizer(), tiny.tokenizer(), None)
    }
    assert len(keys) == 2  # None stands for the other one


# --- tables ---------------------------------------------------------------------------------------------------------


def test_rows_of_the_table_that_reads_the_text() -> None:
    checkpoint = tiny.two_vocabularies()
    table = checkpoint.model.source_embedding
    assert table is not None
    id = ids_of(checkpoint.encode(TEXT))[2]
    tiny.assert_close(torch.from_numpy(lookup(checkpoint, id).row).float(), table.weight[id])
    assert directions(checkpoint).shape == table.weight.shape
    found = norms(checkpoint, torch.tensor([id]).numpy())
    assert found.tokens[0] == pytest.approx(float(table.weight[id].norm()))
    with pytest.raises(TraceError, match=f"ids go from 0 to {len(table.weight) - 1}"):
        lookup(checkpoint, len(table.weight))
    scaled = with_scale(checkpoint, True)
    assert scaled.encode(TEXT) == checkpoint.encode(TEXT)


def test_one_token_in_two_sentences_begins_with_the_sources_row() -> None:
    checkpoint = tiny.two_vocabularies()
    first, second = (checkpoint.trace(text, target="a") for text in (TEXT, "猫和狗"))
    (i, j), *_ = shared(first, second)
    assert contexts(checkpoint, first, second, i, j).table == pytest.approx(1)


# --- files ----------------------------------------------------------------------------------------------------------


def test_our_own_format_keeps_both(tmp_path: Path) -> None:
    original = tiny.two_vocabularies()
    save(original, tmp_path / "ours", torch.float32)
    again = load(tmp_path / "ours")
    assert again.key == original.key
    assert torch.equal(again.trace(TEXT, target=TARGET).logits, original.trace(TEXT, target=TARGET).logits)
    sizes = original.model.config.source_vocab_size, original.model.config.vocab_size
    assert f"{sizes[0]} tokens in the source, {sizes[1]} in the target" in describe(again.report)
    assert again.report.parameters["token embedding"] == sum(size or 0 for size in sizes) * 16
    assert memory.need(inspect(tmp_path / "ours"), torch.float32).weights == 0  # all of them stay mapped
    assert memory.need(inspect(tmp_path / "ours"), torch.float32, torch.device("cuda")).weights == sum(
        tensor.nbytes for tensor in again.model.state_dict().values()
    )
    (tmp_path / "ours" / "source_tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"ours lacks source_tokenizer.json"):
        load(tmp_path / "ours")
    (tmp_path / "ours" / "source_tokenizer.json").write_text(tiny.tokenizer().to_json())
    with pytest.raises(CheckpointError, match=r"source_tokenizer.json has .* but config.json says source_vocab_size="):
        load(tmp_path / "ours")


def test_other_layouts_have_no_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"source_vocab_size="):
        save(tiny.two_vocabularies(), tmp_path, layout="hugging-face")


def test_bare_weights_are_read_as_ids_each_up_to_its_own_limit(tmp_path: Path) -> None:
    path = written(Translator(), tmp_path / "model.pt")
    checkpoint = load(path, **SAID)
    assert ids_of(checkpoint.encode("30, 3")) == [30, 3]
    assert ids_of(checkpoint.encode_target("22")) == [1, 22]
    with pytest.raises(TokenizerError, match=r"type token ids from 0 to 30.*31.* is not a token id"):
        checkpoint.encode("31")
    with pytest.raises(TokenizerError, match=r"type token ids from 0 to 22.*30.* is not a token id"):
        checkpoint.encode_target("30")
    save(checkpoint, tmp_path / "ours", torch.float32)
    assert load(tmp_path / "ours").encode("30 3") == checkpoint.encode("30 3")


def test_tokenizers_beside_bare_weights(tmp_path: Path) -> None:
    source, target = tiny.source_tokenizer(), tiny.tokenizer()
    path = written(Translator((source.vocab_size, target.vocab_size)), tmp_path / "model.pt")
    target.save(tmp_path / "tokenizer.json")
    alone = load(path, **SAID)
    assert [token.id for token in alone.encode("3 1")] == [3, 1]
    assert "there is one tokenizer beside the weights: VizFormer does not use it" in " ".join(
        map(str, alone.report.assumptions)
    )
    source.save(tmp_path / "source_tokenizer.json")
    checkpoint = load(path, **SAID)
    assert ids_of(checkpoint.encode(TEXT)) == ids_of(source.encode(TEXT))
    assert ids_of(checkpoint.encode_target(TARGET))[1:] == ids_of(target.encode(TARGET, special=False))
    assert "source_tokenizer.json beside the weights is the source's" in " ".join(
        map(str, checkpoint.report.assumptions)
    )
    target.save(tmp_path / "source_tokenizer.json")
    other = load(path, **SAID)
    assert [token.id for token in other.encode("3 1")] == [3, 1]
    assert "the tokenizer belongs to another model" in " ".join(map(str, other.report.assumptions))


def test_one_tokenizer_for_two_tables_of_one_size(tmp_path: Path) -> None:
    n = tiny.tokenizer().vocab_size
    path = written(Translator((n, n)), tmp_path / "model.pt")
    tiny.tokenizer().save(tmp_path / "tokenizer.json")
    checkpoint = load(path, **SAID)
    assert "that of the source and of the target" in " ".join(map(str, checkpoint.report.assumptions))
    assert checkpoint.encode(TARGET) == tiny.tokenizer().encode(TARGET)


def test_what_lies_beside_it_may_say_sizes_and_the_source(tmp_path: Path) -> None:
    module = Translator((TARGETS, TARGETS), names=("one_emb", "two_emb"))
    state = torch.load(written(module, tmp_path / "model.pt"))
    said = {
        "nhead": 4,
        "norm_first": False,
        "activation": "relu",
        "scale_embedding": True,
        "pad_idx": 0,
        "source_embedding": "one_emb.weight",
        "src_vocab_size": SOURCES,
    }
    checkpoint = load(saved({"model": state, "hparams": said}, tmp_path / "model.pt"), causal=True)
    assert checkpoint.model.config.pad_id == 0
    assumed = " ".join(map(str, checkpoint.report.assumptions)).replace('"', "")
    assert "source_embedding = one_emb.weight: hparams says source_embedding" in assumed
    assert f"hparams says src_vocab_size={SOURCES}, the tensors say {TARGETS}" in assumed
    assert torch.equal(checkpoint.model.token_table("encoder").weight, state["one_emb.weight"])


def test_damaged_tables(tmp_path: Path) -> None:
    state = Translator().state_dict()
    state["src_tok_emb.embedding.weight"][3, 3] = torch.nan
    with pytest.raises(CheckpointError, match=r"src_tok_emb.embedding.weight.* holds NaN"):
        load(saved(state, tmp_path / "model.pt"), **SAID)

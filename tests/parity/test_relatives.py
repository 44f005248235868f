"""mT5, XLM-RoBERTa, CamemBERT and mBART: relatives of other families that fit the same options exactly."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import Opened, load
from vizformer.checkpoints.hugging_face import by_transformers
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.unsupported_models import BECAUSE
from vizformer.errors import CheckpointError

NEW_ROWS = dict(relative_attention_num_buckets=8, relative_attention_max_distance=10)


# --- mT5 --------------------------------------------------------------------------------------------------------


def mt5(folder: Path, *, model: str = "MT5ForConditionalGeneration", **changes: Any) -> Path:
    folders.write_metaspace(folder, end="</s>")
    options = dict(
        vocab_size=folders.vocabulary(folder),
        d_model=16,
        d_kv=6,
        d_ff=24,
        num_layers=3,
        num_decoder_layers=2,
        num_heads=4,
        pad_token_id=0,
        eos_token_id=2,
        **NEW_ROWS,
    )
    return folders.written(folder, f"{model.partition('For')[0]}Config", model, options, changes)


def test_mt5(tmp_path: Path) -> None:
    """A gated GELU as in T5 v1.1; the last row is never scaled, whatever the file says of ties."""
    opened = opened_and_same(mt5(tmp_path), "MT5ForConditionalGeneration")
    config = opened.model.config
    assert (config.feedforward, config.activation, config.logit_scale) == ("gated", "gelu_tanh", 1.0)
    assert config.start_ids == (0,)


def test_mt5_as_it_is_published(tmp_path: Path) -> None:
    """A head of its own, which the file holds and the config says."""
    folder = folders.change(mt5(tmp_path), tie_word_embeddings=False, tokenizer_class="T5Tokenizer")
    weights = folders.tensors(folder)
    noise = torch.randn(weights["shared.weight"].shape, generator=torch.Generator().manual_seed(9))
    folders.save_tensors(folder, {**weights, "lm_head.weight": noise / 4})
    opened = opened_and_same(folder, "MT5ForConditionalGeneration")
    assert not opened.model.config.tied_unembedding


@pytest.mark.parametrize("changes", [dict(feed_forward_proj="relu"), dict(num_decoder_layers=None, d_kv=4)], ids=str)
def test_options_of_mt5(changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(mt5(tmp_path, **changes), "MT5ForConditionalGeneration")


# --- XLM-RoBERTa and CamemBERT ----------------------------------------------------------------------------------


def scored() -> list[tuple[str, float, int]]:
    """Pieces of the tests' texts, without marks."""
    dice = random.Random(5)
    words = {f"▁{word}" for text in folders.CORPUS for word in text.split()}
    parts = {word[i:j] for word in words for i in range(len(word)) for j in range(i + 1, i + 5)}
    return [(part, round(dice.uniform(-9, -2) + 0.4 * len(part), 3), 1) for part in sorted(parts)]


KINDS = ("XLMRoberta", "Camembert")


def relative(folder: Path, kind: str, *, model: str = "ForMaskedLM", **changes: Any) -> Path:
    tokenizer = their_tokenizer(kind)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    options = dict(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=66,
        type_vocab_size=1,
    )
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": f"{kind}Tokenizer"}))
    return folders.written(folder, f"{kind}Config", f"{kind}{model}", options, changes)


def their_tokenizer(kind: str) -> Any:
    """As `transformers` makes it of the pieces that a training has found."""
    import transformers

    marks = ("<s>", "<pad>", "</s>", "<unk>")
    if kind == "Camembert":
        marks = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>")  # type: ignore[assignment]
    vocabulary = [*((mark, 0.0) for mark in marks), *((text, score) for text, score, __ in scored()), ("<mask>", 0.0)]
    return getattr(transformers, f"{kind}Tokenizer")(vocab=vocabulary)


@pytest.mark.parametrize("kind", KINDS)
def test_relatives_of_roberta(kind: str, tmp_path: Path) -> None:
    folder = relative(tmp_path, kind)
    opened, other, tokenizer = load(folder), theirs(folder, f"{kind}ForMaskedLM"), their_tokenizer(kind)
    texts = [text.replace("\n", " ") for text in folders.TEXTS]  # (published files turn line ends into spaces first)
    for text in (*texts, "cats and dogs, naïve", "the <mask> here", "x <pad> y"):
        assert [token.id for token in opened.encode(text)] == tokenizer(text)["input_ids"], text
        if "<pad>" not in text:  # which the report excludes: theirs counts no position for it
            same_numbers(opened, other, text)
    config = opened.model.config
    assert config.mask_id == opened.tokenizer.id_of("<mask>") == config.vocab_size - 1
    start, end = (0, 2) if kind == "XLMRoberta" else (5, 6)
    ids = [token.id for token in opened.encode("a <mask> x")]
    assert (ids[0], ids[-1], config.vocab_size - 1 in ids) == (start, end, True)
    body = relative(tmp_path / "body", kind, model="Model")
    same_numbers(load(body), theirs(body, f"{kind}Model"))


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_alone_are_not_read(kind: str, tmp_path: Path) -> None:
    """The models' ids are others than those of the file."""
    folder = relative(tmp_path, kind)
    (folder / "tokenizer.json").unlink()
    (folder / "sentencepiece.bpe.model").write_bytes(b"\n\0")
    with pytest.raises(CheckpointError, match=r"sentencepiece\.bpe\.model.*it needs tokenizer\.json.*save_pretrained"):
        load(folder)


# --- mBART ------------------------------------------------------------------------------------------------------


def mbart(folder: Path, *, model: str = "MBartForConditionalGeneration", **changes: Any) -> Path:
    folders.write_metaspace(folder, end="</s>")
    marks = dict(forced_eos_token_id=None, decoder_start_token_id=5)
    options = dict(folders.BOTH, vocab_size=folders.vocabulary(folder), **marks)
    return folders.written(folder, "MBartConfig", model, options, changes)


@pytest.mark.parametrize("changes", [{}, dict(scale_embedding=True, activation_function="relu")], ids=str)
def test_mbart(changes: dict[str, Any], tmp_path: Path) -> None:
    """BART with norms in front of the sublayers, and one behind the last layer of each stack."""
    opened = opened_and_same(mbart(tmp_path, **changes), "MBartForConditionalGeneration")
    config = opened.model.config
    assert (config.norm_order, config.final_norm, config.embedding_norm, config.stack_inputs) == (
        "pre",
        True,
        True,
        "own",
    )
    assert config.start_ids == (5,)
    assert isinstance(opened, Opened)
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"}


def test_fields_of_mbart_as_published(tmp_path: Path) -> None:
    folder = mbart(tmp_path, decoder_start_token_id=None)
    folders.change(
        folder,
        normalize_before=True,
        add_final_layer_norm=True,
        add_bias_logits=False,
        normalize_embedding=True,
        static_position_embeddings=False,
        decoder_start_token_id=...,
        extra_pos_embeddings=2,
        num_hidden_layers=2,
        classif_dropout=0.0,
        output_past=True,
    )
    opened = load(folder)
    said = [str(note) for note in opened.report.assumptions]
    assert not any("does not read" in note for note in said), said
    assert any("(decoder_start_token_id): taken as the end mark, 2" in note for note in said)
    folders.change(folder, normalize_before=False)
    with pytest.raises(CheckpointError, match="normalize_before=false: supported is null / true"):
        load(folder)


# --- what does not fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(BECAUSE))
def test_relatives_that_have_no_arithmetic_here_are_computed_by_transformers_or_refused(kind: str) -> None:
    """Each by a name that `transformers` knows, but for those with code of their own."""
    from transformers import CONFIG_MAPPING

    assert kind in CONFIG_MAPPING or kind == "internlm2"
    assert kind not in BY_TYPE
    assert by_transformers.opens({"model_type": kind})
    try:
        name, has_head = by_transformers.class_of({"model_type": kind})
    except CheckpointError as error:
        said = str(error)
        if by_transformers.knows(kind):
            assert "which VizFormer does not open for" in said  # several classes, of which it names none
        else:
            assert f"a model of texts ({BECAUSE[kind]})" in said
    else:
        assert has_head
        assert name.isidentifier()

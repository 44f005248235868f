"""Marian, BART and T5 folders against `transformers`, every parameter randomised."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, same_translation, theirs
from vizformer.checkpoints import Checkpoint, load
from vizformer.errors import CheckpointError, TokenizerError

MARIAN, BART, T5 = "MarianMTModel", "BartForConditionalGeneration", "T5ForConditionalGeneration"


def fates(checkpoint: Checkpoint) -> dict[str, str]:
    return {tensor.name: tensor.fate for tensor in checkpoint.report.tensors}  # type: ignore[attr-defined]


# --- Marian -----------------------------------------------------------------------------------------------------


def test_marian(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.marian(tmp_path), MARIAN)
    config = checkpoint.model.config
    assert (config.sinusoids, config.scaled_embedding, config.logit_bias) == ("halves", True, True)
    assert config.start_ids == (config.pad_id,) == (config.vocab_size - 1,)
    assert set(fates(checkpoint).values()) == {"used"}
    assert "final_logits_bias" in fates(checkpoint)


@pytest.mark.parametrize(
    "changes",
    [
        dict(activation_function="relu", scale_embedding=False, encoder_layers=1),
        dict(activation_function="gelu", encoder_attention_heads=2, decoder_attention_heads=2, decoder_layers=3),
    ],
    ids=str,
)
@pytest.mark.sample(1)
def test_options_of_marian(changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(folders.marian(tmp_path, **changes), MARIAN)


def test_marian_never_generates_the_padding_where_it_is_banned(tmp_path: Path) -> None:
    """Its row of embeddings is 0 and its bias high: without the ban it would be chosen."""
    folder = folders.marian(tmp_path)
    pad, weights = folders.vocabulary(folder) - 1, folders.tensors(folder)
    weights["final_logits_bias"][0, pad] = 9.0
    folders.save_tensors(folder, weights)
    free = load(folder)
    same_translation(free, theirs(folder, MARIAN))
    assert not free.model.config.never_pad
    assert pad in free.generate(folders.TEXTS[0], max_new=5).ids
    folders.change(folder, bad_words_ids=[[pad]])
    banned = load(folder)
    assert banned.model.config.never_pad
    same_translation(banned, theirs(folder, MARIAN), bad_words_ids=[[pad]])
    assert pad not in banned.generate(folders.TEXTS[0], max_new=5).ids


def test_files_of_marian_as_they_were(tmp_path: Path) -> None:
    """Waves of the positions and second names of the embeddings were saved; the bias of the logits not always."""
    folder = folders.marian(tmp_path)
    weights = folders.tensors(folder)
    del weights["final_logits_bias"]
    table = weights.pop("model.shared.weight")
    names = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    waves = theirs(folder, MARIAN).model.encoder.embed_positions.weight.detach()
    weights |= {name: table.clone() for name in names}
    weights |= {f"model.{stack}.embed_positions.weight": waves.clone() for stack in ("encoder", "decoder")}
    folders.save_tensors(folder, weights)
    checkpoint = opened_and_same(folder, MARIAN)
    assert not checkpoint.model.config.logit_bias
    assert [name for name, fate in fates(checkpoint).items() if fate == "tied"] == [*names[1:]]
    assert {name for name, fate in fates(checkpoint).items() if fate == "unused"} == {
        "model.encoder.embed_positions.weight",
        "model.decoder.embed_positions.weight",
    }
    tiny.assert_close(checkpoint.model.position_encoding, waves)
    weights = folders.tensors(folder)
    folders.save_tensors(folder, {name: t.half() if "positions" in name else t for name, t in weights.items()})
    same_numbers(load(folder), theirs(folder, MARIAN), tolerance=1e-2)
    weights["model.decoder.embed_positions.weight"][5, 3] += 0.1
    folders.save_tensors(folder, weights)
    with pytest.raises(
        CheckpointError, match=r'"model.decoder.embed_positions.weight" does not have the numbers that follow from'
    ):
        load(folder)


# --- BART -------------------------------------------------------------------------------------------------------


def test_bart(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.bart(tmp_path), BART)
    config = checkpoint.model.config
    assert config.stack_inputs == "own"
    assert config.start_ids == (config.eos_id,) == (2,)
    assert set(fates(checkpoint).values()) == {"used"}
    encoder, decoder = checkpoint.model.position_embedding, checkpoint.model.decoder_position_embedding
    assert decoder is not None
    assert encoder.weight.shape == decoder.weight.shape == (64, 16)
    assert not torch.equal(encoder.weight, decoder.weight)


@pytest.mark.parametrize(
    "changes",
    [
        dict(activation_function="relu", scale_embedding=True),
        dict(encoder_layers=1, decoder_layers=1, max_position_embeddings=50),
        dict(encoder_attention_heads=8, decoder_attention_heads=8, activation_function="gelu_new"),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_options_of_bart(changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(folders.bart(tmp_path, **changes), BART)


@pytest.mark.parametrize("where", ["config.json", "generation_config.json"])
def test_the_first_token_of_bart_may_be_given(where: str, tmp_path: Path) -> None:
    folder = folders.bart(tmp_path)
    (folder / "generation_config.json").write_text("{}")
    checkpoint = load(folders.change(folder, where, forced_bos_token_id=0))
    assert checkpoint.model.config.start_ids == (2, 0)
    same_translation(checkpoint, theirs(folder, BART), forced_bos_token_id=0)
    same_numbers(checkpoint, theirs(folder, BART))


# --- T5 ---------------------------------------------------------------------------------------------------------


def test_t5(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.t5(tmp_path), T5)
    config = checkpoint.model.config
    assert (config.d_head, config.attention_scale, config.logit_scale) == (3, 1.0, 0.25)
    assert (config.tied_unembedding, config.feedforward, config.activation) == (True, "plain", "relu")
    assert config.start_ids == (0,)
    assert set(fates(checkpoint).values()) == {"used"}


def test_t5_v1_1(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.t5_v1_1(tmp_path), T5)
    config = checkpoint.model.config
    assert (config.d_head, config.logit_scale, config.tied_unembedding) == (6, 1.0, False)
    assert (config.feedforward, config.activation) == ("gated", "gelu_tanh")
    assert fates(checkpoint)["lm_head.weight"] == "used"


def test_t5_v1_1_saved_again(tmp_path: Path) -> None:
    """`transformers` 5 says with a field of its own that the last row is not scaled."""
    folder = folders.t5_v1_1(tmp_path / "a")
    theirs(folder, T5).save_pretrained(tmp_path / "b")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "b" / name).write_bytes((folder / name).read_bytes())
    again = load(tmp_path / "b")
    assert again.model.config == load(folder).model.config
    same_numbers(again, theirs(tmp_path / "b", T5))


@pytest.mark.parametrize(
    "changes",
    [
        dict(feed_forward_proj="gelu", d_kv=4),
        dict(feed_forward_proj="gated-silu", num_decoder_layers=None),
        dict(relative_attention_num_buckets=32, relative_attention_max_distance=128, layer_norm_epsilon=1e-2),
    ],
    ids=str,
)
@pytest.mark.sample(1)
def test_options_of_t5(changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(folders.t5(tmp_path, **changes), T5)


def test_the_encoder_of_t5_alone(tmp_path: Path) -> None:
    folder = folders.t5(tmp_path, model="T5EncoderModel")
    checkpoint = opened_and_same(folder, "T5EncoderModel")
    assert checkpoint.model.config.architecture == "encoder-only"
    assert not checkpoint.report.has_head  # type: ignore[attr-defined]


def test_what_a_decoder_begins_with_is_assumed_only_where_no_file_says_it(tmp_path: Path) -> None:
    folder = folders.change(folders.t5(tmp_path), decoder_start_token_id=...)
    checkpoint = load(folder)
    assert checkpoint.model.config.start_ids == (0,)
    assert any(
        "(decoder_start_token_id): taken as the padding, 0" in str(note) for note in checkpoint.report.assumptions
    )


@pytest.mark.parametrize(("family", "model"), [("marian", "MarianModel"), ("bart", "BartModel"), ("t5", "T5Model")])
def test_bodies_without_a_head(family: str, model: str, tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.FAMILIES[family](tmp_path, model=model), model)
    assert not checkpoint.report.has_head  # type: ignore[attr-defined]


@pytest.mark.sweep
def test_rows_that_no_token_has(tmp_path: Path) -> None:
    """T5's table of embeddings is rounded up: what the model predicts there has a number for a name."""
    tiny_folder = folders.t5(tmp_path / "as-it-is")
    n = folders.vocabulary(tiny_folder)
    folder = folders.t5(tmp_path / "rounded", vocab_size=n + 28)
    weights = folders.tensors(folder)
    weights["shared.weight"][n + 5 :] *= 30
    folders.save_tensors(folder, weights)
    checkpoint = opened_and_same(folder, T5)
    trace = checkpoint.trace(folders.TEXTS[0])
    found = {token.id: token for token in trace.tokens["decoder"]}
    assert max(found) >= n
    assert found[max(found)].text == f"[{max(found)}]"
    assert checkpoint.tokenizer.vocab_size == n
    with pytest.raises(TokenizerError, match=f"ids go from 0 to {n + 27}"):
        checkpoint.tokenizer.tokens([n + 28])


GENERATION = dict(
    max_length=512,
    num_beams=6,
    early_stopping=True,
    no_repeat_ngram_size=3,
    length_penalty=2.0,
    task_specific_params={"summarization": {"prefix": "summarize: "}},
    prefix=" ",
)
BART_LIKE = dict(
    _num_labels=3,
    add_bias_logits=False,
    add_final_layer_norm=False,
    classif_dropout=0.0,
    normalize_before=False,
    gradient_checkpointing=False,
    **GENERATION,
)
AS_PUBLISHED: dict[str, dict[str, Any]] = {
    "marian": dict(normalize_embedding=False, static_position_embeddings=True, num_hidden_layers=3, **BART_LIKE),
    "bart": dict(
        normalize_embedding=True,
        static_position_embeddings=False,
        extra_pos_embeddings=2,
        num_hidden_layers=2,
        output_past=True,
        min_length=56,
        **BART_LIKE,
    ),
    "t5": dict(
        n_positions=512,
        output_past=True,
        feed_forward_proj=...,
        is_gated_act=...,
        dense_act_fn=...,
        tie_word_embeddings=...,
        scale_decoder_outputs=...,
        relative_attention_max_distance=...,
        num_decoder_layers=...,
        **GENERATION,
    ),
    "t5_v1_1": dict(n_positions=512, is_gated_act=..., dense_act_fn=..., **GENERATION),
}


@pytest.mark.parametrize("family", AS_PUBLISHED)
def test_fields_of_published_files(family: str, tmp_path: Path) -> None:
    """Older files say more, or less; nothing of it is unknown, and what they leave out is as it was."""
    changes: dict[str, Any] = {"t5": dict(num_decoder_layers=3, relative_attention_max_distance=128)}.get(family, {})
    folder = folders.change(folders.FAMILIES[family](tmp_path, **changes), **AS_PUBLISHED[family])
    model = {"marian": MARIAN, "bart": BART}.get(family, T5)
    checkpoint = load(folder)
    same_numbers(checkpoint, theirs(folder, model))
    said = [str(note) for note in checkpoint.report.assumptions]  # type: ignore[attr-defined]
    assert not any("does not read" in note for note in said), said

"""Encoder-decoders of BART's kind against `transformers`: waves or tables, norms in front or not, marks of their own."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import Opened, load
from vizformer.errors import CheckpointError
from vizformer.model.positions import sinusoidal_encoding

SIZES = dict(
    folders.BOTH,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
    decoder_start_token_id=5,
    forced_eos_token_id=None,
)
KINDS = {
    "plbart": "PLBart",
    "mvp": "Mvp",
    "pegasus": "Pegasus",
    "blenderbot": "Blenderbot",
    "m2m_100": "M2M100",
}
LM = "ForConditionalGeneration"


def written(kind: str, folder: Path, *, model: str = LM, **changes: Any) -> Path:
    """A tiny folder of a family."""
    folders.write_metaspace(folder, end="</s>")
    options = {**SIZES, "vocab_size": folders.vocabulary(folder)}
    folders.written(folder, f"{KINDS[kind]}Config", f"{KINDS[kind]}{model}", options, changes)
    if kind == "pegasus":  # the waves were randomised too
        stored = folders.tensors(folder)
        for name in [name for name in stored if "embed_positions" in name]:
            stored[name] = sinusoidal_encoding(64, 16, "halves")
        folders.save_tensors(folder, stored)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(2)
def test_encoder_decoders(kind: str, tmp_path: Path) -> None:
    opened = opened_and_same(written(kind, tmp_path), f"{KINDS[kind]}{LM}")
    assert isinstance(opened, Opened)
    assert opened.model.config.start_ids == (5,)
    waves = {"unused"} if kind == "pegasus" else set()
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"} | waves


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(2)
def test_bodies_without_a_head(kind: str, tmp_path: Path) -> None:
    opened = opened_and_same(written(kind, tmp_path, model="Model"), f"{KINDS[kind]}Model")
    assert isinstance(opened, Opened)
    assert not opened.report.has_head


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_variants(kind: str, tmp_path: Path) -> None:
    scaled = load(written(kind, tmp_path / "usual")).model.config.scaled_embedding
    changes = dict(scale_embedding=not scaled, activation_function="silu", pad_token_id=4, encoder_layers=3)
    opened_and_same(written(kind, tmp_path / "other", **changes), f"{KINDS[kind]}{LM}")


def test_waves_that_a_pegasus_file_holds_are_compared(tmp_path: Path) -> None:
    folder = written("pegasus", tmp_path)
    weights = folders.tensors(folder)
    waves = [name for name in weights if "embed_positions" in name]
    assert len(waves) == 2
    folders.save_tensors(folder, {name: tensor for name, tensor in weights.items() if name not in waves})
    without = load(folder)
    folders.save_tensors(folder, weights)
    assert load(folder).key == without.key
    folders.save_tensors(folder, {**weights, waves[1]: weights[waves[1]] + 0.1})
    with pytest.raises(CheckpointError, match="does not have the numbers that follow"):
        load(folder)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("mvp", dict(use_prompt=True), "use_prompt=true: supported is false"),
        ("m2m_100", dict(pad_token_id=None), "pad_token_id=null: positions are counted from the row after"),
        ("blenderbot", dict(layernorm_variant="xlm"), 'layernorm_variant="xlm": supported is null / "prelayernorm"'),
        ("pegasus", dict(normalize_embedding=True), "normalize_embedding=true: supported is null / false"),
    ],
    ids=str,
)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


ALONE = {"bart": "Bart", "mbart": "MBart", "plbart": "PLBart", "mvp": "Mvp"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ALONE)
def test_decoders_alone(kind: str, tied: bool, tmp_path: Path) -> None:
    """The class keeps cross-attention in its files, which without an encoder is never gone through."""
    folders.write_metaspace(tmp_path, end="</s>")
    options = {**SIZES, "vocab_size": folders.vocabulary(tmp_path), "tie_word_embeddings": tied}
    changes = dict(encoder_layers=3, encoder_attention_heads=2, encoder_ffn_dim=8, decoder_attention_heads=4)
    folders.written(tmp_path, f"{ALONE[kind]}Config", f"{ALONE[kind]}ForCausalLM", options, changes)
    opened = opened_and_same(tmp_path, f"{ALONE[kind]}ForCausalLM")
    assert isinstance(opened, Opened)
    config = opened.model.config
    assert (config.architecture, config.n_decoder_layers, config.tied_unembedding) == ("decoder-only", 3, tied)
    unused = opened.report.with_fate("unused")
    assert len(unused) == 3 * (4 + 1) * 2
    assert all(".encoder_attn" in tensor.name for tensor in unused)

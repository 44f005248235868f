"""The language model of models for pictures and texts, against the whole model of `transformers` on texts alone."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, theirs
from tests.parity.test_decoder_families import LINEAR, LLAMA, MARKS
from vizformer.checkpoints import Opened, RecordedCheckpoint, load
from vizformer.checkpoints.tensors.memory import size
from vizformer.errors import CheckpointError

SLIDING, FULL = "sliding_attention", "full_attention"
TOWER = dict(
    hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
)
QWEN = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=32)
DEEP = dict(QWEN, deepstack_visual_indexes=[0], num_position_embeddings=16)
MROPE = {"rope_type": "default", "rope_theta": 77.0, "mrope_section": [2, 1, 1]}
# model_type -> the name of its classes, its language model, its tower.
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llava": (
        "Llava",
        dict(LLAMA, model_type="llama"),
        dict(TOWER, model_type="clip_vision_model", num_hidden_layers=2),
    ),
    "llava_next": (
        "LlavaNext",
        dict(LLAMA, model_type="mistral", sliding_window=5),
        dict(TOWER, model_type="clip_vision_model", num_hidden_layers=2),
    ),
    "mistral3": (
        "Mistral3",
        dict(LLAMA, model_type="mistral", head_dim=6, sliding_window=5),
        dict(TOWER, model_type="pixtral"),
    ),
    "qwen2_vl": (
        "Qwen2VL",
        dict(LLAMA, rope_parameters=MROPE),
        dict(depth=1, embed_dim=16, hidden_size=32, num_heads=2, mlp_ratio=2),
    ),
    "qwen2_5_vl": ("Qwen2_5_VL", dict(LLAMA, rope_parameters=MROPE), QWEN),
    "qwen3_vl": ("Qwen3VL", dict(LLAMA, head_dim=8, rope_parameters=dict(MROPE, mrope_interleaved=True)), DEEP),
}
LM = "ForConditionalGeneration"


def written(kind: str, folder: Path, text: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A tiny folder of both models."""
    name, inner, tower = KINDS[kind]
    folders.write_metaspace(folder)
    rows = folders.vocabulary(folder)
    sizes = {**inner, **MARKS, "vocab_size": rows, **(text or {})}
    both = dict(text_config=sizes, vision_config=tower, image_token_id=7, tie_word_embeddings=False)
    return folders.written(folder, f"{name}Config", f"{name}{LM}", both, changes)


def same(kind: str, folder: Path) -> Opened:
    opened = opened_and_same(folder, f"{KINDS[kind][0]}{LM}")
    assert isinstance(opened, Opened)
    assert opened.report.has_head
    return opened


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_the_language_model_opens_and_what_is_left_aside_is_told(kind: str, tmp_path: Path) -> None:
    opened = same(kind, written(kind, tmp_path))
    aside = [tensor for tensor in opened.report.tensors if tensor.fate == "unused"]
    assert aside
    assert {str(tensor.note) for tensor in aside} == {"the part that reads images, which text does not pass through"}
    assert {tensor.fate for tensor in opened.report.tensors} == {"used", "unused"}
    n_bytes = sum(4 * math.prod(tensor.shape) for tensor in aside)
    said = f"VizFormer does not open the part that reads images: {len(aside):,} tensors, {size(n_bytes)}"
    assert any(f"the language model of {kind}; {said}" in str(note) for note in opened.report.assumptions)


YARN = dict(rope_type="yarn", rope_theta=77.0, factor=4.0, original_max_position_embeddings=4, llama_4_scaling_beta=0.5)


def test_a_language_model_that_is_recorded_is_taken_out_as_well(tmp_path: Path) -> None:
    """Mistral 3 as it is published: YaRN, and queries scaled by their place."""
    folder = written("mistral3", tmp_path, dict(model_type="ministral3", sliding_window=None, rope_parameters=YARN))
    whole = theirs(folder, f"Mistral3{LM}")
    opened = load(folder)
    assert isinstance(opened, RecordedCheckpoint)
    ids = [token.id for token in opened.encode("I have two dogs")]
    with torch.no_grad():
        out = whole(torch.tensor([ids]), output_attentions=True)
    trace = opened.trace(ids=ids)
    torch.testing.assert_close(trace.logits, out.logits[0], rtol=0, atol=1e-5)
    for site, maps in zip(trace.sites, out.attentions, strict=True):
        found = torch.stack([torch.as_tensor(trace[site].pattern(head)) for head in range(4)])
        torch.testing.assert_close(found, maps[0], rtol=0, atol=1e-5)
    notes = [str(note) for note in opened.report.assumptions]
    assert any(
        "the language model of mistral3; VizFormer does not open the part that reads images" in note for note in notes
    )
    assert {tensor.fate for tensor in opened.report.tensors} == {"used", "unused"}


VARIANTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *((kind, {}, dict(tie_word_embeddings=True)) for kind in KINDS if kind != "llava_next"),
    ("llava", dict(tie_word_embeddings=True, rope_parameters=LINEAR), {}),
    ("llava", dict(model_type="qwen2"), {}),
    ("llava_next", dict(model_type="qwen3", head_dim=6), {}),
    ("qwen2_5_vl", dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=4, max_window_layers=1), {}),
    ("qwen3_vl", dict(tie_word_embeddings=True, attention_bias=True), {}),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "text", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, text: dict[str, Any], changes: dict[str, Any], tmp_path: Path) -> None:
    same(kind, written(kind, tmp_path, text, **changes))


@pytest.mark.sample(1)
@pytest.mark.parametrize("before", ["language_model.model.", "model.language_model.", "model."])
def test_tensors_by_the_names_of_older_files(before: str, tmp_path: Path) -> None:
    kind = "qwen2_5_vl" if before == "model." else "llava"
    folder = written(kind, tmp_path)
    expected = load(folder).model.state_dict()
    stored = folders.tensors(folder)
    renamed = {}
    for name, tensor in stored.items():
        bare = name.removeprefix("model.").removeprefix("language_model.").removeprefix("model.")
        if bare.startswith(("embed_tokens.", "layers.", "norm.")):
            bare = before + bare
        elif bare == "lm_head.weight" and before == "language_model.model.":
            bare = "language_model.lm_head.weight"
        renamed[bare] = tensor
    folders.save_tensors(folder, renamed)
    found = same(kind, folder).model.state_dict()
    assert all(found[name].equal(tensor) for name, tensor in expected.items())


RECORDED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "gemma3": (
        "Gemma3",
        dict(LLAMA, head_dim=6, sliding_window=4, layer_types=[SLIDING, FULL, SLIDING], query_pre_attn_scalar=12)
        | dict(final_logit_softcapping=2.0),  # which the whole model does not read
        dict(TOWER, model_type="siglip_vision_model"),
    ),
    "gemma4": (
        "Gemma4",
        dict(
            LLAMA,
            head_dim=6,
            global_head_dim=16,
            num_hidden_layers=4,
            layer_types=[SLIDING, FULL] * 2,
            sliding_window=4,
        )
        | dict(num_kv_shared_layers=2, hidden_size_per_layer_input=6, num_global_key_value_heads=1),
        dict(TOWER, num_key_value_heads=2, head_dim=8),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", RECORDED)
def test_a_language_model_inside_that_is_recorded(kind: str, tmp_path: Path) -> None:
    """Its own code gives what the whole model gives; what reads pictures is not even made."""
    import transformers

    name, inner, tower = RECORDED[kind]
    folders.write_metaspace(tmp_path)
    rows = folders.vocabulary(tmp_path)
    again = {"vocab_size_per_layer_input": rows} if "hidden_size_per_layer_input" in inner else {}
    both = dict(text_config={**inner, **MARKS, "vocab_size": rows, **again}, vision_config=tower, image_token_id=7)
    both |= dict(mm_tokens_per_image=1) if kind == "gemma3" else {}
    folders.written(tmp_path, f"{name}Config", f"{name}{LM}", both, {})
    opened = load(tmp_path)
    assert isinstance(opened, RecordedCheckpoint)
    assert opened.report.declared == f"{name}ForCausalLM"
    trace = opened.trace("The cats")
    ids = torch.tensor([[token.id for token in trace.tokens["decoder"]]])
    with torch.no_grad():
        whole = getattr(transformers, f"{name}{LM}").from_pretrained(tmp_path)(input_ids=ids).logits[0]
    torch.testing.assert_close(trace.logits, whole, rtol=0, atol=1e-5)
    assert len(trace.sites) == inner["num_hidden_layers"]
    aside = {str(tensor.note) for tensor in opened.report.tensors if tensor.fate == "unused"}
    assert aside == {"the part that reads images, which text does not pass through"}
    assert any(
        f"the language model of {kind}; VizFormer does not open" in str(note) for note in opened.report.assumptions
    )


@pytest.mark.filterwarnings("ignore")
def test_the_language_model_of_gemma_3n_beside_pictures_and_sound(tmp_path: Path) -> None:
    """Its whole needs a library of pictures in `transformers`; the files are those of the language model by other names."""
    import json

    folders.write_metaspace(tmp_path)
    rows = folders.vocabulary(tmp_path)
    options = dict(LLAMA, **MARKS, vocab_size=rows, vocab_size_per_layer_input=rows, hidden_size_per_layer_input=6)
    options |= dict(head_dim=6, num_hidden_layers=4, layer_types=[SLIDING, FULL] * 2, num_kv_shared_layers=2)
    options |= dict(intermediate_size=24, activation_sparsity_pattern=[0.6, 0.0, 0.0, 0.0], laurel_rank=3)
    folders.written(tmp_path, "Gemma3nTextConfig", "Gemma3nForCausalLM", options, {})
    expected, raw = load(tmp_path), json.loads((tmp_path / "config.json").read_text())
    stored = {f"model.language_model.{n.removeprefix('model.')}": w for n, w in folders.tensors(tmp_path).items()}
    stored = {name: tensor for name, tensor in stored.items() if "lm_head" not in name}
    others = ("vision_tower.timm_model.stem.weight", "embed_vision.embedding.weight", "audio_tower.conformer.0.weight")
    stored |= {f"model.{name}": torch.ones(2, 3) for name in (*others, "embed_audio.embedding.weight")}
    folders.save_tensors(tmp_path, stored)
    whole = dict(model_type="gemma3n", architectures=[f"Gemma3n{LM}"], text_config=raw, vision_config={})
    (tmp_path / "config.json").write_text(json.dumps(whole))
    opened = load(tmp_path)
    assert opened.trace("abc").logits.equal(expected.trace("abc").logits)
    assert opened.report.has_head
    notes = [str(tensor.note) for tensor in opened.report.tensors if tensor.fate != "used"]
    assert (
        sorted(note.split(",")[0] for note in notes)
        == ["the part that reads images"] * 2 + ["the part that reads sound"] * 2
    )


def test_fields_of_both_in_one_table(tmp_path: Path) -> None:
    """As the first files of Qwen2.5-VL have them."""
    import json

    folder = written("qwen2_5_vl", tmp_path)
    raw = json.loads((folder / "config.json").read_text())
    text = raw.pop("text_config")
    folders.change(folder, text_config=..., **{**text, "model_type": "qwen2_5_vl"})
    opened = same("qwen2_5_vl", folder)
    assert not [note for note in opened.report.assumptions if "does not read" in str(note)]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("llava", dict(text_config=None), "has no table text_config that describes the language model"),
    ("llava", dict(text_config=[]), "has no table text_config"),
    ("llava", dict(text_config={"model_type": "cohere"}), 'a language model of model_type="cohere", which is not supp'),
    ("llava", dict(text_config={"model_type": "llava"}), 'a language model of model_type="llava", which is not supp'),
    ("llava", dict(text_config={"model_type": {}}), "a language model of model_type={}, which is not supp"),
    ("llava", dict(quantization_config={"bits": 4}), "quantization_config=.*: the weights are quantised"),
    (
        "qwen2_vl",
        dict(text_config={"model_type": "qwen2_vl_text", **LLAMA}),
        "mrope_section: it must list whole numbers that sum to the pairs of a head, 4",
    ),
    ("mistral3", dict(tie_word_embeddings="yes"), 'tie_word_embeddings="yes": it must be true or false'),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kind", "changes", "said"), REFUSED, ids=str)
def test_what_is_not_followed_is_refused(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        load(folders.change(written(kind, tmp_path), **changes))

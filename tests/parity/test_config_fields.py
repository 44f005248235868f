"""Every field of config.json: what `transformers` reads is followed, refused by name, or shown to change nothing."""

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.test_decoder_families import KINDS as DECODERS
from tests.parity.test_decoder_families import written
from tests.parity.test_encoder_decoder_families import KINDS as ENCODER_DECODERS
from tests.parity.test_encoder_decoder_families import written as written_both
from tests.parity.test_encoder_families import KINDS as ENCODERS
from tests.parity.test_encoder_families import written as written_encoder
from tests.parity.test_pictures import written as written_whole
from tests.parity.test_relatives import mbart, mt5
from vizformer.checkpoints import load
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.fields import HARMLESS, KNOWN, NEUTRAL, fields_of, unknown_fields
from vizformer.checkpoints.hugging_face.text_part import INSIDE
from vizformer.checkpoints.hugging_face.unsupported_models import BECAUSE, WHY
from vizformer.errors import CheckpointError, TraceError

TEXT, TARGET = folders.TEXTS[0], folders.TEXTS[2]
PICTURES = "AutoModelForImageTextToText"
CAUSAL, MASKED, BOTH = "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM"
# Two layers, so that one that differs from the other is seen; what more of them cost is paid at each of 1,000 openings.
LAYERS = 2
TWO, DEEP = dict(num_hidden_layers=LAYERS), dict(encoder_layers=LAYERS, decoder_layers=LAYERS)
SLIDING = ["sliding_attention", "full_attention"]
KINDS: dict[str, tuple[Callable[..., Path], str]] = {
    "gpt2": (partial(folders.gpt2, n_layer=LAYERS), CAUSAL),
    "bert": (partial(folders.bert, **TWO), MASKED),
    "roberta": (partial(folders.roberta, **TWO), MASKED),
    "distilbert": (partial(folders.distilbert, n_layers=LAYERS), MASKED),
    "llama": (partial(folders.llama, **TWO), CAUSAL),
    "mistral": (partial(folders.llama, kind="Mistral", sliding_window=5, **TWO), CAUSAL),
    "qwen2": (partial(folders.qwen2, **TWO), CAUSAL),
    "qwen3": (partial(folders.qwen3, **TWO), CAUSAL),
    "opt": (partial(folders.opt, **TWO), CAUSAL),
    "marian": (partial(folders.marian, **DEEP), BOTH),
    "bart": (partial(folders.bart, **DEEP), BOTH),
    "mbart": (partial(mbart, **DEEP), BOTH),
    "t5": (partial(folders.t5, num_layers=LAYERS), BOTH),
    "mt5": (partial(mt5, num_layers=LAYERS), BOTH),
    **{
        kind: (
            partial(written, kind, **{name: LAYERS for name in options if name.endswith(("_layers", "_layer"))}),
            CAUSAL,
        )
        for kind, (_, _, options) in DECODERS.items()
    },
    **{kind: (partial(written_encoder, kind, **TWO), MASKED) for kind in ENCODERS},
    **{kind: (partial(written_both, kind, **DEEP), BOTH) for kind in ENCODER_DECODERS},
}
KINDS |= {f"{kind}_text": (partial(written_whole, kind), PICTURES) for kind in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")}
LINEAR = {"rope_type": "linear", "factor": 2.0}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
# Other values of every field that some family computes with, whether or not the family at hand knows the field.
_VALUES: dict[str, tuple[Any, ...]] = {
    "clip_qkv": (0.1,),
    """
    num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads head_dim d_kv
    """: (2,),
    """
    num_hidden_layers n_layer n_layers num_layers num_decoder_layers encoder_layers decoder_layers
    """: (1,),
    """
    hidden_size n_embd d_model dim n_inner embedding_size word_embed_proj_dim type_vocab_size decoder_vocab_size
    """: (8,),
    "max_position_embeddings n_positions n_ctx": (48,),
    "num_key_value_heads": (1, 4),
    "attention_window": (2, 8, [4, 4], [4, 6], [4], 3, 0, "all", 128),
    "afn": ("relu", "silu", "tanh"),
    "max_window_layers": (1,),
    "sliding_window": (3, None),
    "layer_types": (SLIDING,),
    "use_sliding_window": (True, False),
    "attention_chunk_size": (3,),
    "relative_attention_num_buckets": (4,),
    "relative_attention_max_distance": (5,),
    "layer_norm_eps layer_norm_epsilon rms_norm_eps norm_epsilon": (0.1,),
    "hidden_act activation_function activation": ("gelu_new", "silu", "quick_gelu"),
    "dense_act_fn": ("silu", "relu"),
    "is_gated_act": (True, False),
    "feed_forward_proj": ("gelu", "gated-gelu", "gated-silu"),
    "rope_theta": (50.0,),
    "partial_rotary_factor": (0.25,),
    "rope_scaling": (
        LINEAR,
        {**LLAMA3, "original_max_position_embeddings": 16, "rope_theta": 50.0},
        {"rope_type": "yarn", "factor": 2.0},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "longrope", "factor": 2.0},
        {},
    ),
    "rope_parameters": ({**LINEAR, "rope_theta": 50.0}, LLAMA3, {"partial_rotary_factor": 0.25}, {}, None),
    """
    scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn add_cross_attention is_decoder
    is_encoder_decoder tie_word_embeddings scale_embedding attention_bias mlp_bias do_layer_norm_before
    _remove_final_layer_norm enable_bias layer_norm_elementwise_affine share_encoder_decoder_embeddings
    scale_decoder_outputs is_causal normalize_before normalize_embedding add_final_layer_norm
    static_position_embeddings use_bias use_task_id use_prompt sinusoidal_pos_embds
    """: (True, False),
    "per_layer_config": ({"1": {"num_attention_heads": 2}},),
    "position_embedding_type": ("relative_key",),
    """
    mlp_layer_types mtp_layer_types vision_aspect_ratio vision_feature_layer vision_feature_select_strategy
    output_loading_info output_cross_attentions ffn_dim start_token_id
    """: (1,),
    "bos_token_id eos_token_id pad_token_id decoder_start_token_id": (7, 10**6),
}
VALUES = {name: values for names, values in _VALUES.items() for name in names.split()}
# What a refusal may name instead: the field that repeats it, or says the opposite.
SAME = {
    "feed_forward_proj": ("dense_act_fn",),
    "use_sliding_window": ("sliding_window",),
    "scale_decoder_outputs": ("tie_word_embeddings",),
}
BEFORE = {"rope_theta", "rope_scaling", "partial_rotary_factor"}  # read and renamed
NAMES = ("model_type", "architectures", "transformers_version", "vocab_size")  # which model it is; a size of tensors


def config_class(kind: str) -> Any:
    from transformers import AutoConfig

    return type(AutoConfig.for_model(kind))


def test_every_type_that_opens_has_a_row_here() -> None:
    """But those that are read as another one, in other files: Mistral, RoBERTa."""
    assert BY_TYPE.keys() - KINDS.keys() == {"ministral", "xlm-roberta", "camembert"}


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_no_field_of_a_config_class_is_said_to_be_unread(kind: str) -> None:
    """Also those that it leaves out when it writes a file: second names, and names of older versions."""
    theirs = config_class(kind)
    raw = {**theirs().to_dict(), **{name: getattr(theirs(), name) for name in theirs.attribute_map}, "model_type": kind}
    raw |= dict.fromkeys(BEFORE if "rope_parameters" in raw else ())
    found = fields_of(raw)
    BY_TYPE[kind].config(found, ())
    assert {field.name for field in fields(theirs)} <= raw.keys()
    assert set(unknown_fields(found.raw, found._read)) == set()


def test_every_type_that_predicts_tokens_opens_or_is_refused_with_a_reason() -> None:
    from transformers.models.auto import modeling_auto

    tasks = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT")
    theirs = {kind for task in tasks for kind in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES")}
    opened = BY_TYPE.keys() | INSIDE.keys()
    assert not theirs - opened - BECAUSE.keys()
    assert not opened & BECAUSE.keys()
    assert len(BECAUSE) == sum(len(kinds.split()) for __, kinds in WHY)  # each has one reason


class Pair:
    """One folder, opened here and there under changed fields of its config.json."""

    def __init__(self, kind: str, folder: Path) -> None:
        import transformers

        make, self.auto = KINDS[kind][0], getattr(transformers, KINDS[kind][1])
        self.folder = make(folder)
        self.whole = json.loads((folder / "config.json").read_text())
        self.raw = self.whole.get("text_config", self.whole)  # of the language model, where there is another one too
        ours = load(folder)
        self.ids = [token.id for token in ours.encode(TEXT)]
        self.target = [token.id for token in ours.encode_target(TARGET)] if self.auto.__name__ == BOTH else None
        self.here = self.logits(ours)

    def write(self, raw: dict[str, Any]) -> None:
        said = {**self.whole, "text_config": raw} if "text_config" in self.whole else raw
        (self.folder / "config.json").write_text(json.dumps(said))

    def logits(self, ours: Any) -> torch.Tensor:
        logits: torch.Tensor = ours.trace(ids=self.ids, target_ids=self.target).logits
        return logits

    def theirs(self) -> torch.Tensor | None:
        """The logits of `transformers`; None where it does not open the folder or makes up tensors."""
        try:
            model, found = self.auto.from_pretrained(
                self.folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
            )
            ids = {} if self.target is None else {"decoder_input_ids": torch.tensor([self.target])}
            with torch.no_grad():
                logits: torch.Tensor = model.eval()(torch.tensor([self.ids]), **ids).logits[0]
        except Exception:  # it raises all kinds of them
            return None
        return None if any(found[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys")) else logits

    def judge(self, raw: dict[str, Any], *names: str) -> str:
        """What is wrong with how `raw` is opened; nothing where it is right."""
        self.write(raw)
        try:
            here = self.logits(load(self.folder))
        except TraceError as error:  # the text is longer than what opens under these fields, as the report says
            return "" if "this model accepts" in str(error) else str(error)
        except CheckpointError as error:
            there = None if any(name in str(error) for name in names) else self.theirs()
            return "" if there is None else f"refused without its name: {error}"
        there = self.theirs()
        if there is None:
            return "" if torch.equal(here, self.here) else "opened with other numbers, there not at all"
        if here.shape != there.shape or not torch.allclose(here, there, rtol=0, atol=1e-5 * float(there.abs().max())):
            return "opened with other numbers than there"
        return ""


def names_read(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The attributes of a config that `transformers` asks for while it opens the folder and computes."""
    from transformers import PreTrainedConfig

    asked: set[str] = set()
    theirs = config_class(pair.raw["model_type"])
    usual = PreTrainedConfig.__getattribute__

    def noted(self: Any, name: str) -> Any:
        if "text_config" not in pair.whole or type(self) is theirs:  # not of the one for pictures
            asked.add(name)
        return usual(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(PreTrainedConfig, "__getattribute__", noted)
        assert pair.theirs() is not None
    own = {field.name for field in fields(theirs)}
    asked = {name for name in asked if not callable(getattr(theirs, name, None))}
    return {name for name in asked if name in own or not (name[0] == "_" or hasattr(PreTrainedConfig, name))}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_gives_the_numbers_of_transformers_or_is_refused_by_name(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(kind, tmp_path)
    theirs = config_class(pair.raw["model_type"])
    own = {field.name: field.default for field in fields(theirs)} | dict.fromkeys(theirs.attribute_map)
    asked = names_read(pair, monkeypatch) - theirs.attribute_map.keys()
    found = fields_of({**pair.raw, **dict.fromkeys(asked - set(pair.raw))})
    BY_TYPE[pair.raw["model_type"]].config(found, ())
    assert set(unknown_fields(found.raw, found._read)) <= VALUES.keys()  # what is not known is tried below

    wrong = []
    bases = [pair.raw] + ([{**pair.raw, "rope_parameters": None}] if "rope_parameters" in own else [])
    here = found._read | NEUTRAL.keys() | (BEFORE if len(bases) > 1 else set())
    relevant = (asked | own.keys() | here) & VALUES.keys()
    for field in sorted(relevant):
        first = theirs.attribute_map.get(field, field)
        names = field, first.removeprefix("encoder_"), *SAME.get(field, ())
        for value in VALUES[field]:
            for base in bases if field in BEFORE else bases[:1]:
                if said := pair.judge({**base, field: value}, *names):
                    wrong.append(f"{field}={value}: {said}")
    rest = {name: values[0] for name, values in VALUES.items() if name not in relevant | pair.raw.keys()}
    if said := pair.judge({**pair.raw, **rest}):
        wrong.append(f"fields of other families: {said}")
    harmless = {name: _other(own[name]) for name in own if name in HARMLESS and name not in VALUES}
    harmless = {name: value for name, value in harmless.items() if value is not None and name not in NAMES}
    if said := pair.judge({**pair.raw, **harmless}):
        wrong.append(f"{harmless}: {said}")
    assert not wrong, "\n".join(wrong)


def _other(default: Any) -> Any:
    """A value of the same kind that is not the default; None of kinds that have no obvious other."""
    if isinstance(default, bool):
        return not default
    return default + 0.25 if isinstance(default, float) else None


# --- two names of one thing ------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "kind",
    sorted(kind for kind in KINDS if KNOWN[kind]["aliases"]),
)
def test_a_file_with_second_names(kind: str, tmp_path: Path) -> None:
    """Instead of the first ones, beside them, and against them: the second count, and are never said to be unread."""
    pair = Pair(kind, tmp_path)
    first = KNOWN[kind]["aliases"]
    assert len(set(first.values())) == len(first)
    second = {alias: pair.raw[name] for alias, name in first.items()}
    others = {name: 2 * pair.raw[name] for name in first.values()}
    renamed = {field: value for field, value in pair.raw.items() if field not in others} | second
    for raw, contradicts in (
        (renamed, False),
        ({**pair.raw, **second}, False),
        ({**pair.raw, **others, **second}, True),
    ):
        assert pair.judge(raw) == ""
        notes = [str(note) for note in load(tmp_path).report.assumptions]
        for alias, name in first.items():
            assert not [note for note in notes if "does not read" in note or f"not say {name}:" in note]
            said = (
                f"{name}={others[name]} and {alias}={second[alias]} are two names of one field: VizFormer takes {alias}"
            )
            assert any(said in note for note in notes) is contradicts


def test_a_problem_is_told_by_the_name_that_the_file_has(tmp_path: Path) -> None:
    folder = folders.change(folders.gpt2(tmp_path), n_head=..., num_attention_heads=-1)
    with pytest.raises(CheckpointError, match=r"num_attention_heads=-1: it must be a whole number"):
        load(folder)


def test_layers_of_t5_by_its_second_name(tmp_path: Path) -> None:
    """num_decoder_layers is as many as num_layers says, not num_hidden_layers; 6 where neither is there."""
    folder = folders.change(
        folders.t5(tmp_path, num_layers=2, num_decoder_layers=6),
        num_layers=...,
        num_decoder_layers=...,
        num_hidden_layers=2,
    )
    config = load(folder).model.config
    assert (config.n_encoder_layers, config.n_decoder_layers) == (2, 6)


def test_rope_scaling_comes_before_rope_parameters(tmp_path: Path) -> None:
    found = load(folders.change(folders.llama(tmp_path), rope_scaling=LINEAR))
    assert found.model.config.rope_scaling == "linear"
    assert any("are two names of one field: VizFormer takes rope_scaling" in str(a) for a in found.report.assumptions)

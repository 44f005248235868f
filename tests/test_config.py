"""Options of a model: what is legal, and what is said about what is not."""

import json
import math
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tools.reference import meanings, stations
from vizformer.config import _GONE, _GONE_VALUES, ModelConfig
from vizformer.errors import ConfigError, VizformerError
from vizformer.options import read_kinds
from vizformer.presets import PRESETS

# option(s) -> the value, the rule and the way out that the error must name
ILLEGAL: list[tuple[dict[str, Any], list[str]]] = [
    (dict(vocab_size=0), ["vocab_size=0", "at least 1"]),
    (dict(d_model=0), ["d_model=0", "at least 1"]),
    (dict(n_heads=0), ["n_heads=0", "at least 1"]),
    (dict(n_heads=-4), ["n_heads=-4", "at least 1"]),
    (dict(d_ff=-1), ["d_ff=-1", "at least 1"]),
    (dict(max_positions=0), ["max_positions=0", "at least 1"]),
    (dict(n_encoder_layers=-1), ["n_encoder_layers=-1", "must not be negative"]),
    (dict(n_decoder_layers=-2), ["n_decoder_layers=-2", "must not be negative"]),
    (dict(n_encoder_layers=0, n_decoder_layers=0), ["0 layers", "give n_encoder_layers, n_decoder_layers or both"]),
    (
        dict(d_model=18, n_heads=4),
        ["d_model=18", "n_heads=4", "not divisible", "choose n_heads from 1, 2, 3, 6, 9, 18"],
    ),
    (dict(d_model=15, n_heads=5), ["d_model=15", "odd", "make it even"]),
    (dict(dropout=1.0), ["dropout=1.0", "at least 0 and below 1"]),
    (dict(dropout=-0.1), ["dropout=-0.1", "at least 0 and below 1"]),
    (dict(dropout=math.nan), ["dropout=nan", "at least 0 and below 1"]),
    (dict(norm_eps=0.0), ["norm_eps=0.0", "above 0 and below 1"]),
    (dict(norm_eps=math.inf), ["norm_eps=inf", "above 0 and below 1"]),
    (dict(positions="rotary"), ["positions='rotary'", "'sinusoidal', 'learned', 'rope', 'alibi', 'relative', 'none'"]),
    (dict(norm_order="both"), ["norm_order='both'", "choose one of 'post', 'pre', 'none'"]),
    (
        dict(activation="swish"),
        ["activation='swish'", "choose one of 'relu', 'gelu', 'gelu_tanh', 'quick_gelu', 'silu'"],
    ),
    (dict(norm="batch"), ["norm='batch'", "choose one of 'layer_norm', 'rms_norm'"]),
    (dict(feedforward="glu"), ["feedforward='glu'", "choose one of 'plain', 'gated'"]),
    (dict(head="mlm"), ["head='mlm'", "choose one of 'linear', 'transform'"]),
    (dict(n_kv_heads=3), ["n_heads=4 is not a multiple of n_kv_heads=3", "choose n_kv_heads from 1, 2, 4"]),
    (dict(n_kv_heads=0), ["n_kv_heads=0"]),
    (dict(d_model=12, positions="rope"), ["d_head=3 is odd", "make d_model / n_heads even"]),
    (dict(head_dim=0), ["head_dim=0: must be at least 1"]),
    (dict(head_dim=5, positions="rope"), ["d_head=5 is odd"]),
    (dict(attention_bias="out"), ["attention_bias='out'", "choose one of 'same', 'all', 'qkv', 'none'"]),
    (dict(residual="serial"), ["residual='serial'", "choose one of 'sequential', 'none'"]),
    (dict(rope_scaling="ntk"), ["rope_scaling='ntk'", "choose one of 'none', 'linear', 'llama3'"]),
    (dict(rope_factor=0.0), ["rope_factor=0.0: must be above 0"]),
    (dict(rope_low_turns=math.nan), ["rope_low_turns=nan: must be above 0"]),
    (dict(rope_high_turns=1.0), ["rope_high_turns=1.0: must be above rope_low_turns=1.0"]),
    (dict(rope_trained_positions=0), ["rope_trained_positions=0: must be at least 1"]),
    (dict(rope_theta=1.0), ["rope_theta=1.0: must be above 1"]),
    (dict(rope_theta=math.nan), ["rope_theta=nan: must be above 1"]),
    (dict(relative_buckets=5), ["relative_buckets=5: must be even and at least 4"]),
    (dict(relative_buckets=2), ["relative_buckets=2: must be even and at least 4"]),
    (dict(relative_bias=True), ["relative_bias=True: only an encoder-only model with positions='learned' has it"]),
    (dict(relative_max_distance=16), ["relative_max_distance=16: must be above half of relative_buckets, 16"]),
    (dict(relative_max_distance=2.5), ["relative_max_distance=2.5: must be int"]),
    (dict(sinusoids="mixed"), ["sinusoids='mixed'", "choose one of 'interleaved', 'halves'"]),
    (dict(attention_scale=0.0), ["attention_scale=0.0: must be above 0"]),
    (dict(logit_scale=math.inf), ["logit_scale=inf: must be above 0"]),
    (dict(logit_bias=True, head="transform"), ["logit_bias=True", "has one of its own"]),
    (dict(stack_inputs="own", n_encoder_layers=0), ["stack_inputs='own'", "choose 'shared'"]),
    (dict(never_pad=True, pad_id=None), ["never_pad=True", "give pad_id"]),
    (dict(decoder_start_id=29), ["decoder_start_id=29: must be a token id"]),
    (dict(sliding_window=4), ["sliding_window=4", "a model with two stacks has no sliding window"]),
    (dict(sliding_window=0, n_encoder_layers=0), ["sliding_window=0: must be at least 1"]),
    (dict(sliding_layers=(0,), n_encoder_layers=0), ["sliding_layers without sliding_window"]),
    (dict(sliding_window=4, sliding_layers=(1, 0), n_encoder_layers=0), ["sliding_layers=[1, 0]", "from 0 to"]),
    (dict(sliding_window=4, sliding_layers=(9,), n_encoder_layers=0), ["sliding_layers=[9]", "from 0 to"]),
    (dict(sliding_window=4, sliding_layers=(), n_encoder_layers=0), ["sliding_layers=[]"]),
    (dict(sliding_window=4, sliding_layers="0", n_encoder_layers=0), ["sliding_layers='0'", "must be a list of int"]),
    (dict(source_vocab_size=0), ["source_vocab_size=0: must be at least 1"]),
    (dict(source_vocab_size=5, n_encoder_layers=0), ["source_vocab_size=5", "only one stack"]),
    (dict(n_segments=-1), ["n_segments=-1: must not be negative"]),
    (dict(mask_id=29), ["mask_id=29", "must be a token id, 0 to 28"]),
    (dict(pad_id=29), ["pad_id=29", "must be a token id, 0 to 28"]),
    (dict(bos_id=-1), ["bos_id=-1", "must be a token id, 0 to 28"]),
    (dict(eos_id=1000), ["eos_id=1000", "must be a token id, 0 to 28"]),
    (dict(d_model="16"), ["d_model='16'", "must be int"]),
    (dict(d_model=16.0), ["d_model=16.0", "must be int"]),
    (dict(n_heads=True), ["n_heads=True", "must be int"]),
    (dict(vocab_size=None), ["vocab_size=None", "must be int"]),
    (dict(bias=1), ["bias=1", "must be bool"]),
    (dict(dropout="0.1"), ["dropout='0.1'", "must be float"]),
    (dict(eos_id="2"), ["eos_id='2'", "must be int or nothing"]),
    (dict(positions=None), ["positions=None", "choose one of"]),
    (dict(norm_order=["post"]), ["norm_order=['post']", "choose one of"]),
]


@pytest.mark.parametrize(("changes", "said"), ILLEGAL, ids=[str(changes) for changes, _ in ILLEGAL])
def test_illegal_options_are_refused(changes: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny.config(**changes)
    for part in said:
        assert part in str(caught.value)


def test_all_problems_are_listed_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        tiny.config(d_model=18, dropout=2.0, norm_eps=-1.0, pad_id=99, n_encoder_layers=-1)
    for name in ("d_model=18", "dropout=2.0", "norm_eps=-1.0", "pad_id=99", "n_encoder_layers=-1"):
        assert name in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        tiny.config(d_model="18", activation="swish", bias=None)
    for name in ("d_model='18'", "activation='swish'", "bias=None"):
        assert name in str(caught.value)


def test_every_option_has_an_illegal_value_above() -> None:
    """Flags and ids are checked alike: one of each kind is enough."""
    tried = {name for changes, _ in ILLEGAL for name in changes}
    flags = {name for name, kind in read_kinds(ModelConfig).items() if kind.types == (bool,)}
    ids = {field.name for field in fields(ModelConfig) if field.name.endswith("_id")}
    assert flags & tried
    assert ids & tried
    assert {field.name for field in fields(ModelConfig)} - flags - ids <= tried


def test_every_option_stands_at_one_station_of_the_docstring_in_the_same_order() -> None:
    named = [name for _, _, text in stations(ModelConfig) for name in meanings(text)]
    assert named == [field.name for field in fields(ModelConfig)]


def test_the_text_of_a_config_does_not_know_the_options_that_are_as_usual() -> None:
    """An option that is added later leaves the key of a model that does not use it, and what was kept under that key."""
    assert (
        set(json.loads(str(tiny.config()))) == set(tiny.config().unusual()) < {one.name for one in fields(ModelConfig)}
    )
    assert "attention_scale" not in str(tiny.config())
    assert json.loads(str(tiny.config(attention_scale=2.0)))["attention_scale"] == 2.0


EDGES = [
    dict(dropout=0),
    dict(dropout=0.0),
    dict(n_heads=16),
    dict(d_model=15, n_heads=3, positions="learned"),
    dict(pad_id=None, bos_id=28),
    dict(n_encoder_layers=0),
    dict(head_dim=6, n_heads=5),
]


@pytest.mark.parametrize("changes", EDGES, ids=str)
def test_values_at_the_edge_are_legal(changes: dict[str, Any]) -> None:
    assert tiny.config(**changes)


def test_json_round_trip() -> None:
    config = tiny.config(norm_order="pre", dropout=0.25, pad_id=None)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert ModelConfig.from_dict(json.loads(str(config))) == config


@pytest.mark.parametrize(("name", "nothing"), sorted(_GONE.items()))
def test_options_that_went_are_read_where_they_did_nothing_and_refused_by_name(name: str, nothing: object) -> None:
    options = tiny.config().to_dict()
    assert ModelConfig.from_dict({**options, name: nothing}) == tiny.config()
    with pytest.raises(ConfigError, match=rf"no longer has the options {name}="):
        ModelConfig.from_dict({**options, name: 7})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in _GONE_VALUES.items() for value in values]
)
def test_values_that_went_are_refused_with_the_way_out(name: str, value: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"no longer has the options {name}='{value}'.*Open the folder that it was made from"
    ):
        ModelConfig.from_dict({**tiny.config().to_dict(), name: value})


def test_every_config_of_before_opens() -> None:
    """Those of the bundled models, trainings and trained circuits, some of which have options that went."""
    root = Path(__file__).parent
    files = [*root.glob("trained_circuits/*/config.json"), *root.parent.glob("assets/**/config.json")]
    assert len(files) >= 8
    for file in files:
        ModelConfig.from_dict(json.loads(file.read_text(encoding="utf-8"))["model"])


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'d_modle', 'n_head'.*Known options are.*d_model.*n_heads"):
        ModelConfig.from_dict({**tiny.config().to_dict(), "n_head": 4, "d_modle": 16})


def test_missing_options_are_named() -> None:
    with pytest.raises(ConfigError, match=r"lack d_ff, vocab_size; add them"):
        ModelConfig.from_dict({"d_model": 16, "n_heads": 4})


def test_it_cannot_be_changed_after_the_check() -> None:
    with pytest.raises(FrozenInstanceError):
        tiny.config().d_model = 17  # type: ignore[misc]


def test_architecture() -> None:
    assert tiny.config(n_encoder_layers=1, n_decoder_layers=1).architecture == "encoder-decoder"
    assert tiny.config(n_encoder_layers=0, n_decoder_layers=2).architecture == "decoder-only"
    assert tiny.config(n_encoder_layers=2, n_decoder_layers=0).architecture == "encoder-only"


def test_presets() -> None:
    base, gpt2 = ModelConfig.preset("transformer-base"), ModelConfig.preset("gpt2-small")
    assert (base.d_model, base.n_heads, base.d_head, base.d_ff) == (512, 8, 64, 2048)
    assert (base.n_encoder_layers, base.n_decoder_layers, base.vocab_size) == (6, 6, 37_000)
    assert (base.norm_order, base.positions, base.activation) == ("post", "sinusoidal", "relu")
    assert base.scaled_embedding
    assert base.tied_unembedding
    assert not base.final_norm
    assert (gpt2.architecture, gpt2.norm_order, gpt2.positions, gpt2.activation, gpt2.final_norm) == (
        "decoder-only",
        "pre",
        "learned",
        "gelu_tanh",
        True,
    )
    assert not gpt2.scaled_embedding
    assert gpt2.eos_id == 50_256
    assert ModelConfig.preset("gpt2-small", bias=False, n_decoder_layers=1).n_decoder_layers == 1
    with pytest.raises(ConfigError, match=r"no preset 'gpt5'; choose one of: .*gpt2-small"):
        ModelConfig.preset("gpt5")
    with pytest.raises(ConfigError, match="d_model=-1"):
        ModelConfig.preset("gpt2-small", d_model=-1)
    assert all(ModelConfig.preset(name) for name in PRESETS)


def test_errors_are_ours_and_translatable() -> None:
    """The texts are constants of the catalogue, the values travel beside them."""
    with pytest.raises(VizformerError) as caught:
        tiny.config(d_model=18, dropout=2.0)
    (problems,) = caught.value.message.values.values()
    assert isinstance(problems, tuple)
    assert [problem.text for problem in problems] == [
        "d_model={d_model} is not divisible by n_heads={n_heads}: choose n_heads from {divisors}",
        "{name}={value}: must be at least 0 and below 1",
    ]
    assert problems[1].values == {"name": "dropout", "value": 2.0}

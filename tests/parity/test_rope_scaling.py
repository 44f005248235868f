"""YaRN and dynamic rotary positions against `transformers`: each family with rope_parameters opens or says why not."""

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import same_continuation, same_numbers, theirs
from tests.parity.test_config_fields import config_class
from tests.parity.test_decoder_families import KINDS as DECODERS
from tests.parity.test_decoder_families import written
from tests.parity.test_encoder_families import KINDS as ENCODERS
from tests.parity.test_encoder_families import written as written_encoder
from tests.parity.test_relatives import phi, stablelm
from vizformer.checkpoints import Opened, load
from vizformer.errors import CheckpointError, TraceError

YARN: dict[str, Any] = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 2.0,
    "beta_slow": 0.5,
    "rope_theta": 100.0,
}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 100.0}
MAKERS = {
    "llama": (folders.llama, "LlamaForCausalLM"),
    "qwen2": (folders.qwen2, "Qwen2ForCausalLM"),
    "qwen3": (folders.qwen3, "Qwen3ForCausalLM"),
    "gemma": (folders.gemma, "GemmaForCausalLM"),
    "gpt_neox": (folders.gpt_neox, "GPTNeoXForCausalLM"),
    "phi": (phi, "PhiForCausalLM"),
    "stablelm": (stablelm, "StableLmForCausalLM"),
}
TURNING = [
    kind
    for kind in (*MAKERS, *DECODERS, *ENCODERS)
    if kind != "gemma4_text"  # it takes them from tables of its own (`test_decoder_families.py`)
    and (kind in MAKERS or "rope_parameters" in config_class(kind).__dataclass_fields__)
]
TWO_BASES = ("gemma3_text", "gemma3n_text", "olmo3", "modernbert")  # a table of rope_parameters for each kind of layer
# A part of each head, or not all of the layers: what is multiplied by is no scale of the scores then.
HALF = (
    "gpt_neox",
    "gpt_neox_japanese",
    "phi",
    "stablelm",
    "glm",
    "glm4",
)
PARTLY = (*HALF, "cohere2", "smollm3", "exaone4", *TWO_BASES)
UNREAD = ("phi3",)  # has longrope alone, of which yarn was an older name
OTHERWISE = ("nanochat", "ministral3")  # a norm after the turn; a scale of the queries by place


def folder_of(kind: str, folder: Path, rope: dict[str, Any]) -> tuple[Path, str]:
    """A tiny folder with these rotary positions, and the class that opens it."""
    rope = dict(rope)  # some configurations write into it
    if kind in TWO_BASES:
        plain = {"rope_type": "default", "rope_theta": 50.0}
        rope = {"full_attention": rope, "sliding_attention": plain}
    elif kind in HALF:
        rope = {**rope, "partial_rotary_factor": 0.5}
    if kind in MAKERS:
        make, model = MAKERS[kind]
        return make(folder, rope_parameters=rope), model  # type: ignore[operator]
    if kind in ENCODERS:
        return written_encoder(kind, folder, rope_parameters=rope), f"{ENCODERS[kind][0]}ForMaskedLM"
    return written(kind, folder, rope_parameters=rope), "".join(DECODERS[kind][:2])


def opened_alike(folder: Path, model: str) -> Opened:
    """Stream, maps, logits of several texts, and a continuation."""
    opened, other = load(folder), theirs(folder, model)
    assert isinstance(opened, Opened)
    for text in folders.TEXTS[:3]:
        same_numbers(opened, other, text)
    if opened.model.decoder is not None:
        same_continuation(opened, other)
    return opened


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [kind for kind in TURNING if kind not in (*UNREAD, "ministral3")])
def test_yarn_without_a_factor_of_the_scores(kind: str, tmp_path: Path) -> None:
    """It opens wherever positions are rotary."""
    opened = opened_alike(*folder_of(kind, tmp_path, {**YARN, "attention_factor": 1.0}))
    assert opened.model.config.rope_scaling == "yarn"


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [kind for kind in TURNING if kind not in (*PARTLY, *UNREAD, *OTHERWISE)])
def test_yarn_as_it_is_published(kind: str, tmp_path: Path) -> None:
    """The scores are multiplied by the square of 0.1 ln(factor) + 1."""
    opened = opened_alike(*folder_of(kind, tmp_path / "yarn", YARN))
    plain = load(folder_of(kind, tmp_path / "plain", {**YARN, "attention_factor": 1.0})[0])
    scales = [c.attention_scale or c.d_head**-0.5 for c in (opened.model.config, plain.model.config)]
    assert scales[0] / scales[1] == pytest.approx((0.1 * math.log(4.0) + 1) ** 2)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [kind for kind in TURNING if kind in PARTLY])
def test_a_factor_of_a_part_of_the_scores(kind: str, tmp_path: Path) -> None:
    """Only the numbers that turn, in the layers that turn by it, are multiplied by 0.1 ln(factor) + 1."""
    config = opened_alike(*folder_of(kind, tmp_path, YARN)).model.config
    assert config.rope_gain == pytest.approx(0.1 * math.log(4.0) + 1)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("nanochat", "yarn multiplies nothing there"),
        ("ministral3", "must say original_max_position_embeddings and llama_4"),
    ],
)
def test_where_yarn_is_read_otherwise_it_is_refused(kind: str, said: str, tmp_path: Path) -> None:
    folder, __ = folder_of(kind, tmp_path, YARN)
    with pytest.raises(CheckpointError, match=rf"rope_parameters=.*{said}"):
        load(folder)


@pytest.mark.parametrize(
    "changes",
    [
        dict(truncate=False),
        dict(mscale=0.7, mscale_all_dim=0.4),
        dict(mscale=0.7),
        dict(attention_factor=0.8),
        dict(beta_fast=None, beta_slow=None, original_max_position_embeddings=64),
        dict(factor=0.5),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_what_yarn_may_say(changes: dict[str, Any], tmp_path: Path) -> None:
    opened_alike(folders.llama(tmp_path, rope_parameters={**YARN, **changes}), "LlamaForCausalLM")


def test_yarn_as_it_was_written_before(tmp_path: Path) -> None:
    """Beside rope_theta, as "type", without the length of the first training."""
    new = load(folders.qwen2(tmp_path, rope_parameters={**YARN, "original_max_position_embeddings": 64}))
    old = {name: value for name, value in YARN.items() if name in ("factor", "beta_fast", "beta_slow")}
    folders.change(tmp_path, rope_parameters=..., rope_theta=100.0, rope_scaling={"type": "yarn", **old})
    assert opened_alike(tmp_path, "Qwen2ForCausalLM").model.config == new.model.config


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [kind for kind in TURNING if kind not in (*UNREAD, "ministral3")])
def test_dynamic_up_to_the_length_of_the_first_training(kind: str, tmp_path: Path) -> None:
    """There it changes nothing, and longer texts are not accepted."""
    opened = opened_alike(*folder_of(kind, tmp_path, DYNAMIC))
    assert opened.model.config.rope_scaling == "none"
    assert any("of type dynamic turn by a base of their own" in str(note) for note in opened.report.assumptions)
    longest = opened.model.config.max_positions
    with pytest.raises(TraceError):
        opened.model(tiny.ids(longest + 1))


@pytest.mark.parametrize("kind", UNREAD)
def test_families_with_kinds_of_their_own(kind: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), rope_parameters=DYNAMIC)
    with pytest.raises(CheckpointError, match=r"rope_parameters=.*: supported here are rotary positions as they are"):
        load(folder)


def longrope(pairs: int, **changes: Any) -> dict[str, Any]:
    factors = {"short_factor": [1.0 + 0.3 * m for m in range(pairs)], "long_factor": [5.0 - m for m in range(pairs)]}
    return {"rope_type": "longrope", **factors, "rope_theta": 100.0, **changes}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [kind for kind in TURNING if kind not in (*TWO_BASES, *OTHERWISE)])
def test_longrope_up_to_the_length_of_the_first_training(kind: str, tmp_path: Path) -> None:
    """It divides by short_factor there; longer texts, which are turned by others, are not accepted."""
    plain = load(folder_of(kind, tmp_path / "plain", {"rope_type": "default"})[0]).model.config
    rope = longrope(plain.turned_dims // 2, original_max_position_embeddings=48)
    changes = {"original_max_position_embeddings": 48} if kind == "phi3" else {}  # (which comes first there)
    folder, model = folder_of(kind, tmp_path / "long", rope)
    opened = opened_alike(folders.change(folder, **changes), model)
    config = opened.model.config
    assert (config.rope_scaling, config.max_positions) == ("longrope", 48)
    assert any("texts up to 48 tokens are accepted" in str(note) for note in opened.report.assumptions)
    with pytest.raises(TraceError):
        opened.model(tiny.ids(49))


@pytest.mark.parametrize(
    "changes",
    [
        dict(rope_type="yarn"),
        dict(factor=3.0),
        dict(factor=0.5),
        dict(attention_factor=0.8),
        dict(original_max_position_embeddings=64),
        dict(partial_rotary_factor=0.5, short_factor=[2.0, 3.0], long_factor=[1.0, 1.0]),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_what_longrope_may_say(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = written("phi3", tmp_path)
    folders.change(
        folder, original_max_position_embeddings=48, rope_parameters=..., rope_scaling=longrope(4, **changes)
    )
    opened_alike(folder, "Phi3ForCausalLM")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(long_factor=...), "long_factor"),
        (dict(rope_type="su"), "supported here are rotary positions as they are"),
        (
            dict(short_factor=[1.0] * 3, long_factor=[1.0] * 3),
            "short_factor: it must list a number for each of the 4 pairs",
        ),
        (dict(long_factor=[1.0] * 3), "long_factor.* as long as short_factor"),
        (dict(short_factor=[1.0, 2.0, 3.0, 0.0]), "short_factor.* above 0"),
        (dict(short_factor=[1.0, 2.0, 3.0, 1e-320]), "short_factor.* above 0"),
        (dict(attention_factor=2**63), "attention_factor.* from 0.001 to 1000"),
        (dict(beta_fast=3.0), "longrope and what belongs to it"),
    ],
    ids=str,
)
def test_longrope_that_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    rope = {name: value for name, value in longrope(4, **changes).items() if value is not ...}
    folder = folders.change(
        written("phi3", tmp_path), original_max_position_embeddings=32, rope_parameters=..., rope_scaling=rope
    )
    with pytest.raises(CheckpointError, match=rf"rope_scaling.*{said}"):
        load(folder)


def test_truncate_where_layers_of_two_kinds_turn(tmp_path: Path) -> None:
    folder, __ = folder_of("gemma3_text", tmp_path, {**YARN, "attention_factor": 1.0, "truncate": False})
    with pytest.raises(CheckpointError, match=r"rope_parameters=.*: truncate is not read"):
        load(folder)

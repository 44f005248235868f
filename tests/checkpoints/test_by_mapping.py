"""Weights under a config and a mapping that somebody wrote: the same numbers, or an error that names every mistake."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import tiny
from tests.checkpoints.test_state_dict import ANSWERS, nano_gpt, saved
from vizformer.checkpoints import describe, inspect, load
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, ConfigError

IDS = [3, 1, 4]
LAYER = "decoder.layers.#."


def renamed() -> dict[str, Tensor]:
    """The weights of nanoGPT under names that no layout knows; one turned over, one with an axis more."""
    weights = {name.replace("transformer.", "t.").replace("attn", "a"): tensor for name, tensor in nano_gpt().items()}
    weights["t.wpe.weight"] = weights["t.wpe.weight"][None]
    return {name: tensor.T.contiguous() if "c_fc.weight" in name else tensor for name, tensor in weights.items()}


def mapping() -> dict[Any, Any]:
    found: dict[Any, Any] = {"t.wte.weight": "embedding.weight", "t.wpe.weight": "position_embedding.weight"}
    for kind in ("weight", "bias"):
        found[f"t.h.#.a.c_a.{kind}"] = [f"{LAYER}self_attention.W_{letter}.{kind}" for letter in "QKV"]
        found[f"t.h.#.a.c_proj.{kind}"] = f"{LAYER}self_attention.W_O.{kind}"
        found[f"t.h.#.mlp.c_fc.{kind}"] = {"becomes": f"{LAYER}feedforward.W_in.{kind}", "transposed": kind == "weight"}
        found[f"t.h.#.mlp.c_proj.{kind}"] = f"{LAYER}feedforward.W_out.{kind}"
        found[f"t.h.#.ln_1.{kind}"] = f"{LAYER}self_norm.{kind}"
        found[f"t.h.#.ln_2.{kind}"] = f"{LAYER}feedforward_norm.{kind}"
        found[f"t.ln_f.{kind}"] = f"decoder.final_norm.{kind}"
    return {**found, "lm_head.weight": "unembedding.weight"}


@pytest.fixture
def config(tmp_path: Path) -> ModelConfig:
    return load(saved(nano_gpt(), tmp_path / "known.pt"), **ANSWERS).model.config


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved(renamed(), tmp_path / "odd.pt")


def test_the_numbers_are_those_of_the_same_weights_under_their_own_names(
    config: ModelConfig, path: Path, tmp_path: Path
) -> None:
    expected = load(tmp_path / "known.pt", **ANSWERS).trace(ids=IDS).logits
    for said in (config, config.to_dict()):
        ours = load(path, config=said, mapping=mapping())
        tiny.assert_close(ours.trace(ids=IDS).logits, expected, 1e-6)
    report = inspect(path, config=config, mapping=mapping())
    assert {fate.fate for fate in report.tensors} == {"used"}
    assert next(fate.shape for fate in report.tensors if fate.name == "t.wpe.weight") == (1, 12, 16)
    assert f"the roles of {len(renamed())} tensors were given" in describe(report)
    with pytest.raises(CheckpointError, match="contains only weights"):
        load(path)


def test_what_plays_no_part_and_what_the_file_lacks_are_said(config: ModelConfig, path: Path) -> None:
    weights = torch.load(path)
    probe = {**weights, "probe.weight": torch.ones(2, 2), "steps": torch.tensor(7)}
    del probe["t.ln_f.bias"]
    saved(probe, path)
    said = {**mapping(), "probe.weight": None, 0: ["decoder.final_norm.bias"]}
    del said["t.ln_f.bias"]
    ours = load(path, config=config, mapping=said)
    assert not ours.model.get_parameter("decoder.final_norm.bias").any()
    notes = {fate.name: str(fate.note) for fate in ours.report.with_fate("unused")}
    assert notes["probe.weight"] == "by the mapping, the model does not use it"
    assert "a counter" in notes["steps"]
    with pytest.raises(
        CheckpointError, match=r'"probe.weight" belongs to no part of the model that the mapping describes'
    ):
        load(path, config=config, mapping={name: value for name, value in said.items() if name != "probe.weight"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nothing": "embedding.weight"}, 'there is no "nothing"'),
        ({"t.h.#.x": f"{LAYER}self_norm.bias"}, r'there is no "t.h.#.x"'),
        ({"lm_head.weight": "head.weight"}, 'the config makes no parameter "head.weight"'),
        ({"lm_head.weight": None}, r'no tensor is mapped to "unembedding.weight" \[23, 16\]'),
        ({"t.ln_f.bias": "decoder.final_norm.weight"}, '"decoder.final_norm.weight" is listed twice'),
        ({"t.h.0.ln_1.bias": "decoder.layers.0.self_norm.bias"}, r'"t.h.0.ln_1.bias" is listed twice'),
        ({"t.h.#.ln_1.bias": "decoder.layers.0.self_norm.bias"}, "# must appear on both sides"),
        ({"t.ln_f.bias": 3}, "must be the name of a parameter"),
        ({"t.ln_f.bias": {"becomes": "decoder.final_norm.bias", "turned": True}}, "must be the name of a parameter"),
        ({2: ["decoder.final_norm.bias"]}, "must be the name of a parameter"),
        (
            {"t.h.#.mlp.c_fc.weight": f"{LAYER}feedforward.W_in.weight"},
            r"has shape \[16, 24\], but by the mapping it must be",
        ),
    ],
)
def test_every_mistake_is_named(change: dict[Any, Any], said: str, config: ModelConfig, path: Path) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        load(path, config=config, mapping={**mapping(), **change})
    assert str(caught.value).startswith("The mapping does not fit odd.pt and its config: ")


def test_all_mistakes_are_named_at_once(config: ModelConfig, path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r'there is no "a".*there is no "b".*no tensor is mapped to "unembedding'
    ) as caught:
        load(path, config=config, mapping={**mapping(), "lm_head.weight": None, "a": None, "b": None})
    assert str(caught.value).isprintable()


def test_a_mapping_needs_a_config_and_weights_that_say_nothing_themselves(config: ModelConfig, path: Path) -> None:
    for given in (dict(config=config), dict(mapping=mapping()), dict(config=config, mapping="roles.toml")):
        with pytest.raises(CheckpointError, match="a mapping needs its config, and a config its mapping"):
            load(path, **given)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="The config already gives what n_heads would"):
        load(path, config=config, mapping=mapping(), n_heads=4)
    with pytest.raises(CheckpointError, match=r"zh-en says itself how it is built.*Leave out config, mapping"):
        load("zh-en", config=config, mapping=mapping())
    with pytest.raises(ConfigError, match="Unknown option"):
        load(path, config={"colour": "red"}, mapping=mapping())


def test_a_mapping_beside_the_weights_is_never_passed_over(tmp_path: Path) -> None:
    path = saved(nano_gpt(), tmp_path / "model.pt")
    (tmp_path / "model.pt.mapping.toml").write_text("[roles]\n")
    with pytest.raises(CheckpointError, match=r"model.pt.mapping.toml beside the weights mapped tensors to roles"):
        load(path, **ANSWERS)

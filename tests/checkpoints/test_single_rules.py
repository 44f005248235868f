"""Single rules of reading files, each shown by the smallest file, or call, that it decides about."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from torch import Tensor, nn

import vizformer as vf
from tests import conventions, tiny
from tests.checkpoints import folders
from tests.hooked_models import Hooked, W, attend, numbers
from tests.strangers import LONGEST, D, H, future
from vizformer.checkpoints import load
from vizformer.checkpoints.bare.derived_tensors import Made, with_made
from vizformer.checkpoints.files import hub
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.tensors import memory
from vizformer.checkpoints.tensors.report import describe
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.errors import CheckpointError

IDS = [3, 7, 7, 1, 22, 0, 9]


def saved(weights: dict[str, Tensor], folder: Path) -> Path:
    torch.save(weights, folder / "model.pt")
    return folder / "model.pt"


def author(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model(torch.tensor([IDS]))[0]


def turned(x: Tensor) -> Tensor:
    """Rotary positions, halves of a head: [b, h, n, W]"""
    rates = 10_000.0 ** (-torch.arange(0, W, 2) / W)
    angles = (torch.arange(x.shape[2])[:, None] * rates).repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


class Grouped(Hooked):
    """TransformerLens with two heads of keys and values, and rotary positions, whose waves lie in the file."""

    def __init__(self) -> None:
        super().__init__()
        del self.pos_embed
        rates = torch.cat([10_000.0 ** (-torch.arange(W // 2) / (W // 2))] * 2)
        angles = torch.outer(torch.arange(LONGEST), rates)
        for block in self.blocks:
            for letter in "KV":
                delattr(block.attn, f"W_{letter}")
                delattr(block.attn, f"b_{letter}")
                block.attn.register_parameter(f"_W_{letter}", numbers(2, D, W))
                block.attn.register_parameter(f"_b_{letter}", numbers(2, W))
            block.attn.register_buffer("rotary_sin", angles.sin())
            block.attn.register_buffer("rotary_cos", angles.cos())

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed.W_E[ids]
        for block in self.blocks:
            a, y, of = block.attn, self.norm(block.ln1, x), {}
            for letter, name in zip("QKV", ("", "_", "_"), strict=True):
                weight, bias = getattr(a, f"{name}W_{letter}"), getattr(a, f"{name}b_{letter}")
                made = torch.einsum("bnd,hdw->bhnw", y, weight) + bias[:, None]
                of[letter] = made.repeat_interleave(H // len(weight), 1)
            z = attend(turned(of["Q"]), turned(of["K"]), of["V"], future(x.shape[1]))
            x = x + torch.einsum("bhnw,hwd->bnd", z, a.W_O) + a.b_O
            hidden = nn.functional.gelu(self.norm(block.ln2, x) @ block.mlp.W_in + block.mlp.b_in)
            x = x + hidden @ block.mlp.W_out + block.mlp.b_out
        return self.norm(self.ln_final, x) @ self.unembed.W_U + self.unembed.b_U


def test_transformer_lens_with_few_heads_of_keys_and_rotary_waves(tmp_path: Path) -> None:
    model = tiny.randomise(Grouped()).eval()
    ours = load(saved(model.state_dict(), tmp_path), activation="gelu")
    assert (ours.model.config.kv_heads, ours.model.config.rope_theta) == (2, 10_000.0)
    tiny.assert_close(ours.trace(ids=IDS).logits, author(model))


def test_rotary_waves_of_another_width_than_a_head_are_refused(tmp_path: Path) -> None:
    weights = Grouped().state_dict()
    angles = torch.outer(torch.arange(LONGEST), torch.cat([10_000.0 ** (-torch.arange(W) / W)] * 2))
    for name in [name for name in weights if "rotary" in name]:
        weights[name] = angles.sin() if name.endswith("sin") else angles.cos()
    with pytest.raises(CheckpointError, match="do not rotate the two halves of a head"):
        load(saved(weights, tmp_path), activation="gelu")


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    weights = conventions.Small().state_dict()
    twice = {**weights, "_orig_mod.transformer.ln_f.weight": torch.zeros(D)}
    with pytest.raises(CheckpointError, match=r"ln_f\.weight. occurs twice"):
        load(saved(twice, tmp_path), n_heads=H, activation="gelu")


def test_a_folder_in_which_nothing_says_which_weights_count_is_not_whole(tmp_path: Path) -> None:
    for name in ("one.safetensors", "other.safetensors"):
        (tmp_path / name).touch()
    assert not hub._whole(tmp_path)
    (tmp_path / "other.safetensors").unlink()
    assert hub._whole(tmp_path)


def test_who_ends_the_program_while_a_tokenizer_is_read_is_heard() -> None:
    def stop() -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded("tokenizer.json", stop)


@pytest.mark.parametrize("there", [True, False])
def test_a_mac_has_one_more_device(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: there)
    assert ("mps" in memory.devices()) is there


@pytest.mark.parametrize("make", [folders.distilbert, folders.llama])
def test_a_head_in_the_weights_counts_where_no_class_says_one(make: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = make(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config.pop("architectures", None)
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder).report.has_head


def test_positions_are_described_by_their_kind() -> None:
    assert "  positions   rope, up to 512 tokens\n" in describe(vf.load("stories").report)


def test_what_is_called_a_mask_and_is_not_square_is_none(tmp_path: Path) -> None:
    weights = conventions.Small().state_dict() | {"transformer.h.0.attn.bias": torch.ones(1, 1, 3, 4)}
    with pytest.raises(CheckpointError, match=r"attn\.bias"):
        load(saved(weights, tmp_path), n_heads=H, activation="gelu")


def test_what_is_made_of_several_tensors_has_the_widest_of_their_kinds() -> None:
    def kind(*kinds: str) -> str:
        tensors = {name: Stored("a", (1,), name, lambda: torch.zeros(1)) for name in kinds}
        return with_made(Weights(tensors, {}), {"made": Made(kinds, (2,), torch.cat)}).tensors["made"].dtype

    assert kind("float16", "float32") == kind("float32", "float16") == "float32"
    assert kind("float32", "int8") == "int8"


def test_a_decoder_that_begins_outside_of_the_vocabulary_is_refused(tmp_path: Path) -> None:
    folder = folders.bart(tmp_path, decoder_start_token_id=1_000_000)
    (folder / "generation_config.json").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="decoder_start_token_id=1000000: it must be a token id"):
        load(folder)

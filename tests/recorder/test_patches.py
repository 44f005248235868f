"""Vision models of `transformers`: which tokens are patches; what is recorded is what eager attention hands back."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import vizformer as vf
from vizformer.errors import TraceError
from vizformer.pieces import Piece, Rectangle
from vizformer.recorder import record

transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

SIZES: dict[str, Any] = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
)
MARKS = {
    "ViT": ["[CLS]"],
    "DeiT": ["[CLS]", "[DIST]"],
    "Dinov2": ["[CLS]"],
    "Dinov2WithRegisters": ["[CLS]", "[REG 0]", "[REG 1]", "[REG 2]"],
    "CLIPVision": ["[CLS]"],
    "SiglipVision": [],
}
OTHER_SIZES = {name: {"interpolate_pos_encoding": True} for name in MARKS} | {"Dinov2": {}, "Dinov2WithRegisters": {}}


def made(name: str, attention: str = "eager") -> Any:
    more = {"num_register_tokens": 3} if "Registers" in name else {}
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES, **more)
    model = getattr(transformers, f"{name}Model")._from_config(config, attn_implementation=attention)
    for one in model.parameters():  # of which many are 0 or far too small to tell one token from another
        torch.nn.init.normal_(one, std=0.3)
    return model.eval()


def pixels(height: int = 32, width: int = 32, batch: int = 1) -> torch.Tensor:
    return torch.randn(batch, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", MARKS)
def test_pattern_and_z_are_those_of_eager_attention(name: str) -> None:
    model, given = made(name), pixels()
    with torch.no_grad():
        handed = model(pixel_values=given, output_attentions=True).attentions
    trace = record(model, pixel_values=given).with_patches()
    assert not trace.escaped
    assert len(handed) == 2
    for attention, weights in zip(trace.attention, handed, strict=False):
        assert_close(attention.maps(), weights[0], rtol=0, atol=2e-6)
        for head in range(attention.n_heads):
            assert_close(attention.z(head), weights[0, head] @ attention.v[head], rtol=0, atol=2e-5)
            assert attention.prove(head).holds
    fused = record(made(name, "sdpa"), pixel_values=given)
    assert fused.sites == trace.sites
    for one, other in zip(fused.attention, trace.attention, strict=True):
        assert_close(one.maps(), other.maps(), rtol=0, atol=2e-5)
        for head in range(one.n_heads):
            assert_close(one.z(head), other.z(head), rtol=0, atol=2e-5)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (24, 43)])
@pytest.mark.parametrize("name", MARKS)
def test_the_rectangle_of_a_token_is_the_one_whose_pixels_it_reads(name: str, height: int, width: int) -> None:
    """Each rectangle is painted over: before the first block this changes its token, and no other one."""
    model, options = made(name), OTHER_SIZES[name] if (height, width) != (32, 32) else {}
    given = pixels(height, width)
    trace = record(model, pixel_values=given, **options).with_patches()
    ((stack, pieces),) = trace.pieces.items()
    assert [piece.name for piece in pieces if piece.of is None] == MARKS[name]
    assert len(pieces) == len(MARKS[name]) + (height // 8) * (width // 8)
    assert trace.attention[0].pieces == (pieces, pieces)
    before = trace.residual(stack)
    for at, piece in enumerate(pieces):
        if piece.of is None:
            continue
        x, y, wide, tall = (int(one) for one in (piece.of.x, piece.of.y, piece.of.width, piece.of.height))
        painted = given.clone()
        painted[..., y : y + tall, x : x + wide] += 1
        after = record(model, pixel_values=painted, **options).residual(stack)
        assert (after - before).abs().amax(-1).gt(1e-4).nonzero().flatten().tolist() == [at]


def test_registers_and_the_class_token_are_no_rectangles() -> None:
    trace = record(made("Dinov2WithRegisters"), pixel_values=pixels(16, 24)).with_patches()
    attention = trace["encoder.layer.1.attention"]
    queries, keys = attention.pieces
    assert keys[:4] == (Piece("[CLS]"), Piece("[REG 0]"), Piece("[REG 1]"), Piece("[REG 2]"))
    assert keys[4 + 3 + 2] == Piece("1,2", Rectangle(16, 8, 8, 8, 1, 2, (24, 16)))
    assert attention.tokens[0] == tuple(piece.name for piece in queries)
    assert attention.tokens[1][-1] == "1,2"


def test_the_query_that_pools_an_image_is_no_patch() -> None:
    attention = record(made("SiglipVision"), pixel_values=pixels()).with_patches()["head.attention"]
    queries, keys = attention.pieces
    assert (queries, len(keys)) == ((), 16)
    vf.figures.patch_map(attention.pattern(0), queries, keys, query=0)


def test_only_the_tower_that_reads_the_image_has_patches() -> None:
    text = {name: size for name, size in SIZES.items() if name not in ("image_size", "patch_size")}
    text |= dict(vocab_size=61, max_position_embeddings=20, bos_token_id=1, eos_token_id=2)
    config = transformers.CLIPConfig(text_config=text, vision_config=SIZES, projection_dim=16)
    ids = torch.arange(3, 20)[None]  # 17 tokens of text, as many as the image has
    trace = record(transformers.CLIPModel(config).eval(), input_ids=ids, pixel_values=pixels()).with_patches()
    assert [*trace.pieces] == ["vision_model.encoder.layers"]
    assert {one.pieces == ((), ()) for one in trace.attention if one.stack.startswith("text")} == {True}


def test_of_a_batch_each_image_has_its_own_maps() -> None:
    model, given = made("ViT"), pixels(batch=2)
    trace = record(model, pixel_values=given).with_patches().of_item(1)
    alone = record(model, pixel_values=given[1:])
    assert len(trace.attention[0].pieces[0]) == 17
    assert_close(trace.attention[1].maps(), alone.attention[1].maps(), rtol=0, atol=1e-5)


def test_attention_within_windows_is_refused_with_the_reason() -> None:
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
    )
    trace = record(transformers.SwinModel(config).eval(), pixel_values=pixels())
    with pytest.raises(TraceError, match="Attention of swin stays within windows"):
        trace.with_patches()


class Own(torch.nn.Module):
    """A model of somebody: patches of 8 × 8 pixels, then one token behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = torch.nn.Conv2d(3, 16, 8, 8)
        self.last = torch.nn.Parameter(torch.zeros(1, 1, 16))
        layer = torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)
        self.blocks = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.cut(x).flatten(2).transpose(1, 2)
        found: torch.Tensor = self.blocks(torch.cat([rows, self.last.expand(len(x), -1, -1)], 1))
        return found


def test_of_any_model_the_patches_are_said() -> None:
    trace = record(Own().eval(), pixels(24, 40))
    said = trace.with_patches(3, 5, after=["[OUT]"])
    queries, _ = said["blocks.layers.0.self_attn"].pieces
    assert queries[-1] == Piece("[OUT]")
    assert queries[7] == Piece("1,2", Rectangle(16, 8, 8, 8, 1, 2, (40, 24)))
    cropped = record(Own().eval(), pixels(24, 43)).with_patches(3, 5, after=["[OUT]"], size=(40, 24))
    assert cropped["blocks.layers.0.self_attn"].pieces[0][7].of == Rectangle(16, 8, 8, 8, 1, 2, (43, 24))


@pytest.mark.parametrize(
    ("size", "said", "told"),
    [
        ((24, 40), {}, "no config with image_size and patch_size"),
        (
            (24, 40),
            dict(rows=3, columns=5),
            "are 15 tokens; the run has: blocks.layers 16",
        ),
        ((24, 43), dict(rows=3, columns=5, after=["x"]), "3 × 5 patches do not cut 43 × 24 pixels evenly"),
        ((24, 40), dict(rows=0, columns=5), "0 × 5 patches do not cut"),
        ((24, 40), dict(rows=3, columns=5, size=(39, 24)), "3 × 5 patches do not cut 40 × 24 pixels"),
        ((24, 40), dict(rows=3, columns=5, size=(50, 24)), "3 × 5 patches do not cut 40 × 24 pixels"),
    ],
)
def test_what_does_not_add_up_is_refused(size: tuple[int, int], said: dict[str, Any], told: str) -> None:
    trace = record(Own().eval(), pixels(*size))
    with pytest.raises(TraceError, match=told):
        trace.with_patches(**said)


def test_a_config_that_the_run_contradicts_and_an_unknown_type_are_refused() -> None:
    model = made("ViT")
    model.config.patch_size = 16
    with pytest.raises(TraceError, match="2 × 2 patches and 1 other tokens by the config, but the run has 17"):
        record(model, pixel_values=pixels()).with_patches()
    model.config.patch_size, model.config.model_type = 8, "somebody's"
    with pytest.raises(TraceError, match="It is not known which tokens of somebody's are no patches"):
        record(model, pixel_values=pixels()).with_patches()


def test_without_an_image_or_with_several_sizes_nothing_is_guessed() -> None:
    model = made("Dinov2")
    with vf.recording(model) as trace, torch.no_grad():
        model(pixel_values=pixels())
        model(pixel_values=pixels(16, 16))
    with pytest.raises(TraceError, match="images of 2 sizes"):
        trace.with_patches()
    text = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True), 2).eval()
    with pytest.raises(TraceError, match="images of 0 sizes"):
        record(text, torch.randn(1, 6, 16)).with_patches(2, 3)

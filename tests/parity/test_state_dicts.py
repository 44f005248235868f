"""Bare weights against the module that they were saved from: logits, and attention maps where it returns them."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import tiny
from vizformer.checkpoints import Opened, load

V, D, H, LAYERS, FF, LONGEST = 23, 16, 4, 2, 24, 12
IDS = [3, 7, 7, 1, 22, 0, 9]


def written(module: nn.Module, path: Path) -> Path:
    torch.save(tiny.randomise(module).eval().state_dict(), path)
    return path


def same_logits(ours: Opened, theirs: Callable[..., Tensor], **trace: Any) -> None:
    with torch.no_grad():
        expected = theirs(torch.tensor([IDS]))
    tiny.assert_close(ours.trace(ids=IDS, **trace).logits, expected[0])


# --- GPT-2, nanoGPT, minGPT --------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Causal attention with one matrix for query, key and value; the mask is a buffer, as minGPT keeps it."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D, bias=bias), nn.Linear(D, D, bias=bias)
        self.register_buffer("bias", torch.ones(LONGEST, LONGEST).tril()[None, None])

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = (part.view(1, n, H, D // H).transpose(1, 2) for part in self.c_attn(x).split(D, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(D // H)
        pattern = scores.masked_fill(self.bias[:, :, :n, :n] == 0, -math.inf).softmax(-1)
        return self.c_proj((pattern @ v).transpose(1, 2).reshape(1, n, D))


class OldAttention(nn.Module):
    """The same with a matrix each, as minGPT of 2020 has it."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.key, self.query, self.value, self.proj = (nn.Linear(D, D, bias=bias) for _ in range(4))
        self.register_buffer("mask", torch.ones(LONGEST, LONGEST).tril()[None, None])

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = (part(x).view(1, n, H, D // H).transpose(1, 2) for part in (self.query, self.key, self.value))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, n, D))


class GPT(nn.Module):
    """nanoGPT's (and later minGPT's) names: transformer.wte, .wpe, .h.0.ln_1, ..., .ln_f, lm_head."""

    def __init__(self, *, bias: bool = True, tied: bool = True, approximate: str = "none", eps: float = 1e-5) -> None:
        super().__init__()

        def layer() -> nn.Module:
            mlp = nn.ModuleDict(dict(c_fc=nn.Linear(D, FF, bias=bias), c_proj=nn.Linear(FF, D, bias=bias)))
            norms = dict(ln_1=nn.LayerNorm(D, eps, bias=bias), ln_2=nn.LayerNorm(D, eps, bias=bias))
            return nn.ModuleDict(dict(**norms, attn=Attention(bias), mlp=mlp))

        self.approximate = approximate
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(V, D),
                wpe=nn.Embedding(LONGEST, D),
                h=nn.ModuleList(layer() for _ in range(LAYERS)),
                ln_f=nn.LayerNorm(D, eps, bias=bias),
            )
        )
        self.lm_head = nn.Linear(D, V, bias=False)
        if tied:
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
        for layer in self.transformer.h:
            x = x + layer.attn(layer.ln_1(x))
            x = x + layer.mlp.c_proj(F.gelu(layer.mlp.c_fc(layer.ln_2(x)), approximate=self.approximate))
        return self.lm_head(self.transformer.ln_f(x))


class OldGPT(nn.Module):
    """minGPT of 2020: tok_emb, pos_emb [1, n, d], blocks.0.ln1, ..., ln_f, head."""

    def __init__(self) -> None:
        super().__init__()

        def layer() -> nn.Module:
            mlp = nn.Sequential(nn.Linear(D, FF), nn.GELU(), nn.Linear(FF, D))
            return nn.ModuleDict(dict(ln1=nn.LayerNorm(D), ln2=nn.LayerNorm(D), attn=OldAttention(True), mlp=mlp))

        self.tok_emb, self.pos_emb = nn.Embedding(V, D), nn.Parameter(torch.zeros(1, LONGEST, D))
        self.blocks = nn.ModuleList(layer() for _ in range(LAYERS))
        self.ln_f, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_emb(ids) + self.pos_emb[:, : ids.shape[1]]
        for layer in self.blocks:
            x = x + layer.attn(layer.ln1(x))
            x = x + layer.mlp(layer.ln2(x))
        return self.head(self.ln_f(x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_nano_gpt(bias: bool, tied: bool, activation: str, tmp_path: Path) -> None:
    model = GPT(bias=bias, tied=tied, approximate="tanh" if activation == "gelu_tanh" else "none", eps=1e-3)
    ours = load(written(model, tmp_path / "ckpt.pt"), n_heads=H, activation=activation, norm_eps=1e-3)
    assert ours.name == "ckpt"
    assert ours.report.has_head
    assert (ours.model.unembedding is None) is tied
    same_logits(ours, model)


def test_mini_gpt(tmp_path: Path) -> None:
    model = OldGPT()
    ours = load(written(model, tmp_path / "model.pth"), n_heads=H, activation="gelu")
    same_logits(ours, model)
    (place,) = [tensor for tensor in ours.report.tensors if tensor.name == "pos_emb"]
    assert place.shape == (1, LONGEST, D)


@pytest.mark.parametrize("body", [False, True])
def test_gpt2_of_transformers(body: bool, tmp_path: Path) -> None:
    """Its matrices lie transposed, and so does the body of it alone, saved without a head."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=V,
        n_embd=D,
        n_head=H,
        n_layer=LAYERS,
        n_inner=FF,
        n_positions=LONGEST,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="eager",
    )
    model = tiny.randomise(transformers.GPT2LMHeadModel(config)).eval()
    torch.save((model.transformer if body else model).state_dict(), tmp_path / "gpt2.bin")
    ours = load(tmp_path / "gpt2.bin", n_heads=H)
    same_logits(ours, lambda ids: model(ids).logits)
    with torch.no_grad():
        maps = model(torch.tensor([IDS]), output_attentions=True).attentions
    trace = ours.trace(ids=IDS)
    for layer, expected in enumerate(maps):
        for head in range(H):
            tiny.assert_close(trace[f"decoder.{layer}.self"].pattern(head), expected[0, head].detach())


# --- nn.TransformerEncoder, nn.Transformer -----------------------------------------------------------------------


class Waves(nn.Module):
    """Sine and cosine in float32, kept as a buffer [n, 1, d], as the tutorials do."""

    def __init__(self, n: int = 60, *, halves: bool = False) -> None:
        super().__init__()
        place = torch.arange(n)[:, None]
        rate = torch.exp(torch.arange(0, D, 2) * (-math.log(10_000.0) / D))
        pe = torch.zeros(n, 1, D)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        pe = torch.cat([pe[..., 0::2], pe[..., 1::2]], dim=-1) if halves else pe
        self.register_buffer("pe", pe)


class Language(nn.Module):
    """A language model around nn.TransformerEncoder."""

    def __init__(
        self,
        *,
        positions: str,
        causal: bool,
        scaled: bool,
        norm: bool,
        tied: bool,
        output_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.pos_encoder = Waves(halves=positions == "halves") if positions in ("waves", "halves") else None
        self.pos_embed = nn.Parameter(torch.zeros(1, LONGEST, D)) if positions == "learned" else None
        layer = nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, batch_first=True, layer_norm_eps=1e-3, **options)
        self.transformer_encoder = nn.TransformerEncoder(
            layer, LAYERS, nn.LayerNorm(D, 1e-3) if norm else None, enable_nested_tensor=False
        )
        self.linear = nn.Linear(D, V, bias=output_bias)
        if tied:
            self.linear.weight = self.embedding.weight
        self.causal, self.scaled = causal, scaled

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = self.embedding(ids) * (math.sqrt(D) if self.scaled else 1.0)
        if self.pos_encoder is not None:
            x = x + self.pos_encoder.pe[:n, 0]
        if self.pos_embed is not None:
            x = x + self.pos_embed[:, :n]
        return self.linear(self.transformer_encoder(x, mask=future(n) if self.causal else None))


def future(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


LANGUAGES: list[dict[str, Any]] = [
    dict(positions="waves", causal=True, scaled=True, norm=False, tied=False, norm_first=False, activation="relu"),
    dict(positions="waves", causal=False, scaled=False, norm=True, tied=True, norm_first=True, activation="gelu"),
    dict(positions="learned", causal=True, scaled=False, norm=True, tied=False, norm_first=True, activation="relu"),
    dict(
        positions="none",
        causal=False,
        scaled=True,
        norm=False,
        tied=False,
        norm_first=False,
        activation="gelu",
        output_bias=False,
    ),
    dict(
        positions="halves",
        causal=True,
        scaled=True,
        norm=True,
        tied=False,
        norm_first=True,
        activation="gelu",
        bias=False,
    ),
]


@pytest.mark.parametrize("options", LANGUAGES, ids=lambda o: "-".join(map(str, o.values())))
def test_transformer_encoder(options: dict[str, Any], tmp_path: Path) -> None:
    model, names = Language(**options), {"waves": "sinusoidal", "halves": "sinusoidal"}
    answers = dict(
        n_heads=H,
        norm_order="pre" if options["norm_first"] else "post",
        activation=options["activation"],
        causal=options["causal"],
        scaled_embedding=options["scaled"],
        norm_eps=1e-3,
    )
    if options["positions"] == "none":
        answers["positions"] = "none"
    ours = load(written(model, tmp_path / "model.pt"), **answers)
    assert ours.model.config.architecture == ("decoder-only" if options["causal"] else "encoder-only")
    assert ours.model.config.positions == names.get(options["positions"], options["positions"])
    assert (ours.model.config.sinusoids == "halves") is (options["positions"] == "halves")
    same_logits(ours, model)
    same_maps(ours, model)


def same_maps(ours: Opened, model: Language) -> None:
    """Every layer's attention on the residual stream that goes into it, with the weights that PyTorch returns."""
    (stack,) = (trace := ours.trace(ids=IDS)).tokens
    for index, layer in enumerate(model.transformer_encoder.layers):
        x = trace.residual(f"{stack}.{index}.pre")[None].clone()
        y = layer.norm1(x) if layer.norm_first else x
        mask = future(len(IDS)) if model.causal else None
        maps = layer.self_attn(y, y, y, attn_mask=mask, need_weights=True, average_attn_weights=False)[1]
        for head in range(H):
            tiny.assert_close(trace[f"{stack}.{index}.self"].pattern(head), maps[0, head].detach())


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_layers_alone(norm_first: bool, activation: str, tmp_path: Path) -> None:
    """Without a table of embeddings token i is the i-th unit vector, and the logits are the output itself."""
    layer = nn.TransformerEncoderLayer(
        D, H, FF, dropout=0.0, batch_first=True, norm_first=norm_first, activation=activation
    )
    model = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    ids = [id % D for id in IDS]
    ours = load(
        written(model, tmp_path / "model.pt"),
        n_heads=H,
        norm_order="pre" if norm_first else "post",
        activation=activation,
        causal=False,
        positions="none",
    )
    with torch.no_grad():
        expected = model(torch.eye(D)[ids][None])
    tiny.assert_close(ours.trace(ids=ids).residual("encoder.final"), expected[0])
    assert not ours.report.has_head


class Translation(nn.Module):
    """nn.Transformer with one table for source, target and output."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(V, D)
        self.positional_encoding = Waves()
        self.transformer = nn.Transformer(D, H, LAYERS, LAYERS + 1, FF, dropout=0.0, batch_first=True, **options)
        self.generator = nn.Linear(D, V)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        x, y = (self.tok_emb(rows) * math.sqrt(D) for rows in (ids, target))
        waves = self.positional_encoding.pe[:, 0]
        out = self.transformer(x + waves[: x.shape[1]], y + waves[: y.shape[1]], tgt_mask=future(y.shape[1]))
        return self.generator(out)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.sample(1)
def test_transformer(norm_first: bool, tmp_path: Path) -> None:
    model = Translation(norm_first=norm_first, activation="gelu")
    ours = load(
        written(model, tmp_path / "model.pt"),
        n_heads=H,
        norm_order="pre" if norm_first else "post",
        activation="gelu",
        scaled_embedding=True,
        bos_id=1,
        eos_id=2,
    )
    target = [1, 5, 4]
    same_logits(ours, lambda ids: model(ids, torch.tensor([target])), target_ids=target)
    assert ours.model.config.bos_id == 1
    assert ours.trace(ids=IDS).tokens["decoder"][0].id == 1  # a target is generated


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer_alone(tmp_path: Path) -> None:
    model = nn.Transformer(D, H, LAYERS, LAYERS, FF, dropout=0.0, batch_first=True)
    ids, target = [id % D for id in IDS], [4, 5]
    ours = load(
        written(model, tmp_path / "model.pt"), n_heads=H, norm_order="post", activation="relu", positions="none"
    )
    with torch.no_grad():
        expected = model(torch.eye(D)[ids][None], torch.eye(D)[target][None], tgt_mask=future(2))
    tiny.assert_close(ours.trace(ids=ids, target_ids=target).logits, expected[0])

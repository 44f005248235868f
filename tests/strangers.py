"""Models as strangers write and save them: one small module for each habit, with the forward that its author gave it.

Every class takes ids [b, n] (or what its docstring says) and is made without arguments; `KINDS` names them all.  The
names of the tensors are those of the course, tutorial or repository that the habit comes from.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

V, D, H, LAYERS, FF, LONGEST, CLASSES = 23, 16, 4, 2, 24, 12, 3
SOURCES = 31  # rows of a source's own table


def future(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def sine_waves(n: int) -> Tensor:
    """[n, D], sine and cosine in turn."""
    angles = torch.arange(n)[:, None] * torch.exp(-torch.arange(0, D, 2) * math.log(10_000.0) / D)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def heads(x: Tensor) -> Tensor:
    """[b, n, D] -> [b, H, n, D / H]"""
    return x.unflatten(-1, (H, D // H)).transpose(1, 2)


def together(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def layer(**options: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, batch_first=True, **options)


def stack(**options: Any) -> nn.TransformerEncoder:
    return nn.TransformerEncoder(layer(**options), LAYERS, enable_nested_tensor=False)


class Waves(nn.Module):
    """The tutorials' sine waves, as a buffer `pe` [n, 1, D]."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pe", sine_waves(60)[:, None])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.shape[1], 0]


# --- around PyTorch's own layers ---------------------------------------------------------------------------------


class WikiText(nn.Module):
    """The tutorial on language models: encoder, pos_encoder, transformer_encoder, decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.pos_encoder, self.transformer_encoder = Waves(), stack()
        self.encoder, self.decoder = nn.Embedding(V, D), nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.pos_encoder(self.encoder(ids) * math.sqrt(D))
        return self.decoder(self.transformer_encoder(x, mask=future(ids.shape[1])))


class Inherited(nn.Transformer):
    """The word language model of PyTorch's examples: it is an nn.Transformer, of which it uses the encoder only."""

    def __init__(self) -> None:
        super().__init__(D, H, LAYERS, 0, FF, dropout=0.0, batch_first=True)
        self.pos_encoder, self.input_emb = Waves(), nn.Embedding(V, D)
        self.decoder = nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.pos_encoder(self.input_emb(ids) * math.sqrt(D))
        return self.decoder(self.encoder(x, mask=future(ids.shape[1])))


class TokenEmbedding(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n, D)

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids) * math.sqrt(D)


class Seq2Seq(nn.Module):
    """The tutorial on translation: src_tok_emb, tgt_tok_emb, positional_encoding, transformer, generator.

    Its forward takes ids of the source and of the target.
    """

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(D, H, LAYERS, LAYERS, FF, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(D, V)
        self.src_tok_emb, self.tgt_tok_emb = TokenEmbedding(SOURCES), TokenEmbedding(V)
        self.positional_encoding = nn.Module()
        self.positional_encoding.register_buffer("pos_embedding", sine_waves(60)[:, None])

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        places = self.positional_encoding.pos_embedding[:, 0]
        x, y = self.src_tok_emb(ids), self.tgt_tok_emb(target)
        x, y = x + places[: x.shape[1]], y + places[: y.shape[1]]
        return self.generator(self.transformer(x, y, tgt_mask=future(target.shape[1])))


class Classifier(nn.Module):
    """A class for the whole text, from the mean over the positions; `body` is what comes before."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.pos_encoder, self.transformer_encoder = nn.Embedding(V, D), Waves(), stack()
        self.fc = nn.Linear(D, CLASSES)

    def body(self, ids: Tensor) -> Tensor:
        return self.transformer_encoder(self.pos_encoder(self.embedding(ids)))

    def forward(self, ids: Tensor) -> Tensor:
        return self.fc(self.body(ids).mean(1))


class DeepHead(nn.Module):
    """A lecture's LightningModule: input_net, transformer, and an output_net of several layers with a norm inside."""

    def __init__(self) -> None:
        super().__init__()
        self.input_net = nn.Sequential(nn.Embedding(V, D), nn.Dropout(0.1))
        self.positional_encoding = Waves()
        self.transformer = stack(norm_first=True, activation="gelu")
        self.output_net = nn.Sequential(
            nn.Linear(D, D), nn.LayerNorm(D), nn.ReLU(), nn.Dropout(0.1), nn.Linear(D, CLASSES)
        )

    def body(self, ids: Tensor) -> Tensor:
        return self.transformer(self.positional_encoding(self.input_net(ids)))

    def forward(self, ids: Tensor) -> Tensor:
        return self.output_net(self.body(ids))


class Continuous(nn.Module):
    """The same with a linear layer in front: it reads rows of numbers [b, n, 7], no tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.input_net = nn.Sequential(nn.Dropout(0.1), nn.Linear(7, D))
        self.positional_encoding, self.transformer = Waves(), stack()
        self.output_net = nn.Linear(D, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return self.output_net(self.transformer(self.positional_encoding(self.input_net(rows))))


class WithAClassToken(nn.Module):
    """A learned vector is put in front of the text, and the class read off at its place."""

    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        self.embedding, self.pos_embed = nn.Embedding(V, D), nn.Parameter(torch.zeros(1, LONGEST, D))
        self.encoder, self.head = stack(), nn.Linear(D, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        x = torch.cat([self.cls_token.expand(len(ids), -1, -1), self.embedding(ids)], dim=1)
        return self.head(self.encoder(x + self.pos_embed[:, : x.shape[1]])[:, 0])


# --- written by hand ---------------------------------------------------------------------------------------------


class LectureHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(D, D // H, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.ones(LONGEST, LONGEST).tril())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        scores = self.query(x) @ self.key(x).transpose(1, 2) * (D // H) ** -0.5
        return scores.masked_fill(self.tril[:n, :n] == 0, -math.inf).softmax(-1) @ self.value(x)


class LectureAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads, self.proj = nn.ModuleList(LectureHead() for _ in range(H)), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class LectureBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sa = LectureAttention()
        self.ffwd = nn.Module()
        self.ffwd.net = nn.Sequential(nn.Linear(D, FF), nn.ReLU(), nn.Linear(FF, D), nn.Dropout(0.1))
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd.net(self.ln2(x))


class LectureGPT(nn.Module):
    """The lecture "Let's build GPT": a module for every head, blocks.0.sa.heads.0.key."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding_table, self.position_embedding_table = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.blocks = nn.Sequential(*(LectureBlock() for _ in range(LAYERS)))
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embedding_table(ids) + self.position_embedding_table(torch.arange(ids.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x)))


class StudentAttention(nn.Module):
    """fc_q, fc_k, fc_v, fc_o, as a well-known set of translation notebooks has them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc_q, self.fc_k, self.fc_v, self.fc_o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = heads(self.fc_q(x)), heads(self.fc_k(memory)), heads(self.fc_v(memory))
        return self.fc_o(together(F.scaled_dot_product_attention(q, k, v, mask)))


class StudentLayer(nn.Module):
    def __init__(self, *, cross: bool) -> None:
        super().__init__()
        self.self_attn_layer_norm, self.ff_layer_norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.self_attention = StudentAttention()
        if cross:
            self.enc_attn_layer_norm, self.encoder_attention = nn.LayerNorm(D), StudentAttention()
        self.positionwise_feedforward = nn.ModuleDict(dict(fc_1=nn.Linear(D, FF), fc_2=nn.Linear(FF, D)))

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        x = self.self_attn_layer_norm(x + self.self_attention(x, x, mask))
        if memory is not None:
            x = self.enc_attn_layer_norm(x + self.encoder_attention(x, memory))
        inner = self.positionwise_feedforward
        return self.ff_layer_norm(x + inner["fc_2"](F.relu(inner["fc_1"](x))))


class StudentStack(nn.Module):
    def __init__(self, n: int, *, cross: bool) -> None:
        super().__init__()
        self.tok_embedding, self.pos_embedding = nn.Embedding(n, D), nn.Embedding(LONGEST, D)
        self.layers = nn.ModuleList(StudentLayer(cross=cross) for _ in range(LAYERS))
        if cross:
            self.fc_out = nn.Linear(D, n)

    def forward(self, ids: Tensor, memory: Tensor | None = None) -> Tensor:
        x = self.tok_embedding(ids) * math.sqrt(D) + self.pos_embedding(torch.arange(ids.shape[1]))
        for block in self.layers:
            x = block(x, memory, None if memory is None else ~future(ids.shape[1]))
        return x if memory is None else self.fc_out(x)


class StudentTranslator(nn.Module):
    """Translation notebooks with separate projections; its forward takes ids of the source and of the target."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = StudentStack(SOURCES, cross=False), StudentStack(V, cross=True)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        return self.decoder(target, self.encoder(ids))


class Packed(nn.Module):
    """The style of one prolific author: layers.0.0.fn.to_qkv, without biases, in pairs of attention and network."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.pos_emb = nn.Embedding(V, D), nn.Embedding(LONGEST, D)
        self.layers = nn.ModuleList(
            nn.ModuleList(
                [
                    nn.ModuleDict(
                        dict(
                            norm=nn.LayerNorm(D),
                            fn=nn.ModuleDict(dict(to_qkv=nn.Linear(D, 3 * D, bias=False), to_out=nn.Linear(D, D))),
                        )
                    ),
                    nn.ModuleDict(
                        dict(
                            norm=nn.LayerNorm(D),
                            fn=nn.ModuleDict(dict(net=nn.Sequential(nn.Linear(D, FF), nn.GELU(), nn.Linear(FF, D)))),
                        )
                    ),
                ]
            )
            for _ in range(LAYERS)
        )
        self.to_logits = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, V))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_emb(ids) + self.pos_emb(torch.arange(ids.shape[1]))
        for attention, network in self.layers:
            q, k, v = (heads(part) for part in attention["fn"]["to_qkv"](attention["norm"](x)).chunk(3, dim=-1))
            mixed = together(F.scaled_dot_product_attention(q, k, v, is_causal=True))
            x = x + attention["fn"]["to_out"](mixed)
            x = x + network["fn"]["net"](network["norm"](x))
        return self.to_logits(x)


# --- nanoGPT and its children ------------------------------------------------------------------------------------


class NanoLayer(nn.Module):
    def __init__(self, norms: tuple[str, str], *, qk_norm: bool) -> None:
        super().__init__()
        self.names, self.qk_norm = norms, qk_norm
        for name in norms:
            self.add_module(name, nn.LayerNorm(D))
        self.attn = nn.ModuleDict(dict(c_attn=nn.Linear(D, 3 * D), c_proj=nn.Linear(D, D)))
        if qk_norm:
            self.attn.update(dict(q_norm=nn.LayerNorm(D // H), k_norm=nn.LayerNorm(D // H)))
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(D, FF), c_proj=nn.Linear(FF, D)))

    def forward(self, x: Tensor) -> Tensor:
        first, second = (getattr(self, name) for name in self.names)
        q, k, v = (heads(part) for part in self.attn["c_attn"](first(x)).split(D, dim=2))
        if self.qk_norm:
            q, k = self.attn["q_norm"](q), self.attn["k_norm"](k)
        x = x + self.attn["c_proj"](together(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](second(x))))


class NanoGPT(nn.Module):
    """nanoGPT; or a child of it with norms by other names, norms of queries and keys, or no table of positions."""

    def __init__(
        self, norms: tuple[str, str] = ("ln_1", "ln_2"), *, qk_norm: bool = False, positions: bool = True
    ) -> None:
        super().__init__()
        layers = nn.ModuleList(NanoLayer(norms, qk_norm=qk_norm) for _ in range(LAYERS))
        self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(V, D), h=layers, ln_f=nn.LayerNorm(D)))
        if positions:
            self.transformer["wpe"] = nn.Embedding(LONGEST, D)
        self.lm_head = nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.transformer["wte"](ids)
        if "wpe" in self.transformer:
            x = x + self.transformer["wpe"](torch.arange(ids.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


# --- no Transformer at all ---------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm, self.fc = nn.Embedding(V, D), nn.LSTM(D, D, batch_first=True), nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        return self.fc(self.lstm(self.embedding(ids))[0])


class Pictures(nn.Module):
    """Reads [b, 3, n, n]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.fc = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.fc(self.bn1(self.conv1(pictures)).mean((2, 3)))


KINDS: dict[str, Callable[[], nn.Module]] = {
    "wikitext": WikiText,
    "inherited": Inherited,
    "seq2seq": Seq2Seq,
    "classifier": Classifier,
    "deep head": DeepHead,
    "nanogpt": NanoGPT,
    "continuous": Continuous,
    "class token": WithAClassToken,
    "lecture gpt": LectureGPT,
    "student translator": StudentTranslator,
    "packed": Packed,
    "recurrent": Recurrent,
    "pictures": Pictures,
    "nanogpt, other norms": lambda: NanoGPT(("ln1", "ln2")),
    "nanogpt, qk norm": lambda: NanoGPT(qk_norm=True),
    "nanogpt, no positions": lambda: NanoGPT(positions=False),
}


def lightning(weights: dict[str, Tensor], prefix: str = "model.") -> dict[str, Any]:
    """What Lightning's Trainer writes around the state dict of a module that keeps its model under `prefix`."""
    momentum = {0: {"step": torch.tensor(5.0), "exp_avg": torch.zeros(3), "exp_avg_sq": torch.zeros(3)}}
    return {
        "epoch": 3,
        "global_step": 96,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": {f"{prefix}{name}": tensor for name, tensor in weights.items()},
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"current": {"completed": 3}}}},
        "callbacks": {"ModelCheckpoint{'monitor': 'val_loss'}": {"best_model_score": torch.tensor(0.5)}},
        "optimizer_states": [{"state": momentum, "param_groups": [{"lr": 1e-3, "params": [0]}]}],
        "lr_schedulers": [],
        "hparams_name": "kwargs",
        "hyper_parameters": {"lr": 1e-3, "num_heads": H},
    }

"""The Transformer of "Attention Is All You Need" in plain PyTorch, grown lesson by lesson, checked number by number.

    python examples/transformer_from_scratch.py                      # 我有一只猫。
    python examples/transformer_from_scratch.py 他喜欢喝水。 --save steps.safetensors

It builds the model, loads the weights of zh-en that come with VizFormer, translates the sentence, and prints how far
every step is from the trace of the app.  The names of the steps are those of the page "Check your own", which reads
the file that --save writes.  Copy this file, break a line, and look at which step departs first.
"""

import argparse
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

Steps = dict[str, Tensor]  # what a forward leaves to be looked at, by name


# %% Tokens and embeddings. A row for each token, times sqrt(d_model).


def embed(table: Tensor, ids: Tensor) -> Tensor:
    return table[ids] * math.sqrt(table.shape[1])  # [n, d_model]


# %% Positions. Fast waves in the low dimensions, slow ones in the high ones.


def positional_encoding(n: int, d_model: int) -> Tensor:
    pos = torch.arange(n, dtype=torch.float64)[:, None]  # [n, 1]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # [d_model / 2]
    angle = pos / 10_000 ** (pair / d_model)
    P = torch.zeros(n, d_model, dtype=torch.float64)
    P[:, 0::2], P[:, 1::2] = angle.sin(), angle.cos()
    return P.float()


# %% Query, key, value. softmax(Q K^T / sqrt(d_k) + mask) V, with every step on the way.


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, steps: Steps, name: str) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [n_heads, n_q, n_k]
    steps[f"{name}.scores"] = scores
    if mask is not None:
        scores = scores + mask
        steps[f"{name}.mask"] = scores
    weights = torch.softmax(scores, dim=-1)  # rows sum to 1
    z = weights @ v  # [n_heads, n_q, d_k]
    steps[f"{name}.weights"], steps[f"{name}.z"] = weights, z
    return z


# %% Multi-head attention. Cut d_model into heads; afterwards write the heads of a token side by side.


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    n, d_model = x.shape
    return x.reshape(n, n_heads, d_model // n_heads).transpose(0, 1)  # [n_heads, n, d_k]


def join_heads(z: Tensor) -> Tensor:
    n_heads, n, d_k = z.shape
    return z.transpose(0, 1).reshape(n, n_heads * d_k)  # [n, d_model]


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.W_Q, self.W_K = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_V, self.W_O = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, source: Tensor, mask: Tensor | None, steps: Steps, name: str) -> Tensor:
        q = split_heads(self.W_Q(x), self.n_heads)
        k, v = split_heads(self.W_K(source), self.n_heads), split_heads(self.W_V(source), self.n_heads)
        for letter, value in (("q", q), ("k", k), ("v", v)):
            steps[f"{name}.heads.{letter}"] = value
        joined = join_heads(attention(q, k, v, mask, steps, name))
        out: Tensor = self.W_O(joined)
        steps[f"{name}.concat"], steps[f"{name}.out"] = joined, out
        return out


# %% Masks. -inf above the diagonal, added before the softmax.


def causal_mask(n: int) -> Tensor:
    return torch.full((n, n), -torch.inf).triu(1)


# %% Add & norm, feed-forward. x <- norm(x + sublayer(x)), twice.


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.W_in, self.W_out = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor, steps: Steps, name: str) -> Tensor:
        hidden = self.W_in(x)  # [n, d_ff]
        active = F.relu(hidden)
        out: Tensor = self.W_out(active)  # [n, d_model]
        steps[f"{name}.hidden"], steps[f"{name}.activation"], steps[f"{name}.narrow"] = hidden, active, out
        return out


class Layer(nn.Module):
    """Of the encoder; with `cross`, of the decoder."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, cross: bool) -> None:
        super().__init__()
        self.self_attention, self.self_norm = MultiHeadAttention(d_model, n_heads), nn.LayerNorm(d_model)
        if cross:
            self.cross_attention, self.cross_norm = MultiHeadAttention(d_model, n_heads), nn.LayerNorm(d_model)
        self.feedforward, self.feedforward_norm = FeedForward(d_model, d_ff), nn.LayerNorm(d_model)

    def forward(self, x: Tensor, memory: Tensor | None, mask: Tensor | None, steps: Steps, name: str) -> Tensor:
        x = self.self_norm(x + self.self_attention(x, x, mask, steps, f"{name}.self"))
        steps[f"{name}.self.norm"] = x
        if memory is not None:
            x = self.cross_norm(x + self.cross_attention(x, memory, None, steps, f"{name}.cross"))
            steps[f"{name}.cross.norm"] = x
        x = self.feedforward_norm(x + self.feedforward(x, steps, f"{name}.feedforward"))
        steps[f"{name}.feedforward.norm"] = x
        return x


class Stack(nn.Module):
    def __init__(self, n_layers: int, d_model: int, n_heads: int, d_ff: int, cross: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(d_model, n_heads, d_ff, cross) for _ in range(n_layers))


# %% Cross-attention. The decoder's queries look at the encoder's output.


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, d_model: int, n_heads: int, d_ff: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)  # one table: both inputs and, transposed, the logits
        self.encoder = Stack(n_layers, d_model, n_heads, d_ff, cross=False)
        self.decoder = Stack(n_layers, d_model, n_heads, d_ff, cross=True)

    def forward(self, ids: Tensor, target_ids: Tensor, steps: Steps | None = None) -> Tensor:
        steps = {} if steps is None else steps
        memory = self.run("encoder", ids, None, None, steps)
        x = self.run("decoder", target_ids, memory, causal_mask(len(target_ids)), steps)
        steps["logits"] = x @ self.embedding.weight.T  # [n_target, vocabulary]
        return steps["logits"]

    def run(self, stack: str, ids: Tensor, memory: Tensor | None, mask: Tensor | None, steps: Steps) -> Tensor:
        x = embed(self.embedding.weight, ids)
        x = x + positional_encoding(*x.shape)
        steps[f"{stack}.0.input"] = x
        for index, layer in enumerate(getattr(self, stack).layers):
            x = layer(x, memory, mask, steps, f"{stack}.{index}")
        return x


# %% Decoding: generating text. The most probable token each time, until the end mark.

BOS, EOS = 1, 2


def translate(model: Transformer, ids: Tensor, longest: int = 100) -> list[int]:
    said = [BOS]
    while len(said) < longest:
        best = int(model(ids, torch.tensor(said))[-1].argmax())
        if best == EOS:
            break
        said.append(best)
    return said


# %% All together: the app's weights, its sentence, its trace.


def bundled() -> Transformer:
    """A model of the size of zh-en with its weights."""
    from vizformer.assets import asset

    weights = load_file(Path(asset("models", "zh-en", "model.safetensors")))
    vocabulary, d_model = weights["embedding.weight"].shape
    model = Transformer(vocabulary, d_model, n_heads=4, d_ff=1024, n_layers=3)
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return model.eval()


def main(arguments: list[str] | None = None) -> tuple[str, dict[str, float]]:
    import vizformer as vf
    from vizformer.analysis.other_programs.first_departure import compare

    parser = argparse.ArgumentParser(description="A Transformer from scratch, checked against VizFormer's trace.")
    parser.add_argument("sentence", nargs="?", default="我有一只猫。")
    parser.add_argument("--save", help="where to write the steps, as safetensors")
    given = parser.parse_args(arguments)
    checkpoint, model, steps = vf.load("zh-en"), bundled(), Steps()
    ids = torch.tensor([token.id for token in checkpoint.encode(given.sentence)])
    with torch.no_grad():
        said = translate(model, ids)
        model(ids, torch.tensor(said), steps)
    text = checkpoint.tokenizer.decode(said).strip()
    print(f"{given.sentence} -> {text}")
    found = compare(checkpoint, checkpoint.trace(given.sentence), {name: x.numpy() for name, x in steps.items()})
    for step in found.steps:
        print(f"{step.name:36} {'x'.join(map(str, step.shape)):>12}   max |difference| {step.difference:.1e}")
    print("every step agrees" if found.first is None else f"the first to depart: {found.first.name}")
    if given.save:
        save_file({name: x.contiguous() for name, x in steps.items()}, given.save)
    return text, {step.name: step.difference for step in found.steps}


if __name__ == "__main__":
    main()

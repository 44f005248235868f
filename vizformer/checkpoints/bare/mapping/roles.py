"""The roles that a tensor can play: the names of our own parameters, with # for the number of a layer.

A model of one stack has `layers.#. ...`, whether it turns out to be an encoder or a decoder; one of two has
`encoder.layers.#. ...` and `decoder.layers.#. ...`, the decoder's with a cross-attention.

| role | shape |
|---|---|
| `embedding.weight`, `source_embedding.weight` | [tokens, width] |
| `position_embedding.weight`, `decoder_position_embedding.weight` | [positions, width] |
| `segment_embedding.weight` | [segments, width] |
| `self_attention.W_Q`, `.W_K`, `.W_V` | [heads x d_head, width] |
| `self_attention.qkv`, `.kv` (any order of the letters) | those, one under the other |
| `self_attention.W_O` | [width, heads x d_head] |
| `self_attention.q_norm`, `.k_norm` | [d_head] |
| `feedforward.W_in`, `.W_gate` | [d_ff, width] |
| `feedforward.W_out` | [width, d_ff] |
| `self_norm`, `cross_norm`, `feedforward_norm`, `embedding_norm`, `final_norm` | [width] |
| `unembedding.weight` | [tokens, width] |
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["table", "reads", "makes", "norm", "head norm"]

_ATTENTIONS: tuple[tuple[str, Kind], ...] = (
    ("W_Q", "reads"),
    ("W_K", "reads"),
    ("W_V", "reads"),
    ("qkv", "reads"),
    ("kv", "reads"),
    ("W_O", "makes"),
    ("q_norm", "head norm"),
    ("k_norm", "head norm"),
)
_NETWORK: tuple[tuple[str, Kind], ...] = (
    ("feedforward.W_in", "reads"),
    ("feedforward.W_gate", "reads"),
    ("feedforward.W_out", "makes"),
    ("feedforward_norm", "norm"),
)
_FUSED = re.compile(r"(?!.*([qkv]).*\1)[qkv]{2,3}")  # no letter twice


@dataclass(frozen=True)
class Role:
    """A module of our model that a module of the file can stand for: a weight, and maybe a bias."""

    name: str  # of the module, e.g. "layers.#.self_attention.W_Q"
    # a table of rows; a matrix that reads rows, or makes them; a norm of rows, or of the queries of one head
    kind: Kind
    biased: bool = True  # whether it may have a bias

    @property
    def in_layers(self) -> bool:
        return "#" in self.name

    @property
    def by_head(self) -> bool:
        """Whether every head may have a tensor of its own."""
        return self.name.endswith(("_attention.W_Q", "_attention.W_K", "_attention.W_V", "_attention.W_O"))


def list_roles(*, both: bool) -> list[Role]:
    """All roles of a model with one stack, or with two, in the order of the forward."""
    found = [Role("embedding", "table", biased=False), Role("position_embedding", "table", biased=False)]
    if both:
        found.insert(0, Role("source_embedding", "table", biased=False))
        found.append(Role("decoder_position_embedding", "table", biased=False))
    found.append(Role("segment_embedding", "table", biased=False))
    for stack in ("encoder.", "decoder.") if both else ("",):
        found.append(Role(f"{stack}embedding_norm", "norm"))
        for attention in ("self", "cross") if stack == "decoder." else ("self",):
            place = f"{stack}layers.#.{attention}"
            found += [Role(f"{place}_attention.{name}", kind) for name, kind in _ATTENTIONS]
            found.append(Role(f"{place}_norm", "norm"))
        found += [Role(f"{stack}layers.#.{name}", kind) for name, kind in _NETWORK]
        found.append(Role(f"{stack}final_norm", "norm"))
    return [*found, Role("unembedding", "table")]


_BY_NAME = {role.name: role for both in (False, True) for role in list_roles(both=both)}


def find(tensor_role: str) -> tuple[Role, str] | None:
    """The role of a tensor, such as "layers.#.self_norm.bias", and whether it is the weight or the bias."""
    module, __, kind = tensor_role.rpartition(".")
    if kind not in ("weight", "bias"):
        return None
    holder, __, last = module.rpartition(".")
    if holder.endswith("_attention") and _FUSED.fullmatch(last):
        module = f"{holder}.{'qkv' if len(last) == 3 else 'kv'}"
    numbered = re.sub(r"(?<=layers\.)\d{1,4}(?=\.)", "#", module)
    role = _BY_NAME.get(numbered)
    return None if role is None or (kind == "bias" and not role.biased) else (role, kind)

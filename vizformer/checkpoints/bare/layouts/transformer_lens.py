"""State dicts of TransformerLens: every head has matrices of its own, in one tensor, and rows are multiplied from the left.

blocks.0.attn.W_Q [head, d_model, d_head], W_O [head, d_head, d_model], b_Q [head, d_head]; embed.W_E, pos_embed.W_pos,
unembed.W_U [d_model, d_vocab]; ln1.w, ln1.b, which are missing where they were folded into what follows.

Source: github.com/TransformerLensOrg/TransformerLens, HookedTransformer and its components.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.checkpoints.bare.derived_tensors import Made, masks, reshaped, turned
from vizformer.checkpoints.bare.layout import Layout, Plan, zeros
from vizformer.checkpoints.bare.layouts.task_heads import left_out
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import NORM, Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAMES = ("TransformerLens",)
NEVER = -10_000.0  # the logit of a token that the head does not know: its probability is exactly 0
ABSENT = replace(  # no norm has weights
    NORM,
    text=N_("Which norm does the model have, in its layers or elsewhere? (None of them has weights.)"),
    choices=("none", *NORM.choices),
    usual="none",
    insists=True,
)
SCALE = Question(
    "score_scale",
    N_("By what are the attention scores divided?"),
    ("root_of_d_head", "root_of_d_model", "d_head", "nothing"),
    usual="root_of_d_head",
)
RESIDUAL = Question(
    "residual",
    N_("Does the model have residual connections: is the output of a sublayer added to its input?"),
    ("sequential", "parallel"),
    usual="sequential",
)
# What its config says and no model here computes.
REFUSES: Mapping[str, tuple[object, ...]] = {
    "normalization_type": ("SoLU",),
    "positional_embedding_type": ("shortformer", "alibi"),
    "act_fn": ("solu", "solu_ln"),
    "use_local_attn": (True,),
    "scale_attn_by_inverse_layer_idx": (True,),
}
_LAYER = re.compile(r"blocks\.(\d{1,3})\.attn\.W_Q")


def recognise(weights: Weights) -> Layout | None:
    layers = {int(found[1]) for name in weights.tensors if (found := _LAYER.fullmatch(name))}
    if not layers or "embed.W_E" not in weights.tensors:
        return None
    for name in ("blocks.0.attn.W_Q", "unembed.W_U"):
        if name not in weights.tensors or len(weights.tensors[name].shape) != (3 if "attn" in name else 2):
            raise CheckpointError(
                "{file} has names of TransformerLens, but {name} is missing or of another shape than it has there.",
                file=weights.where,
                name=shown(name),
            )
    return _Reader(weights, len(layers)).layout()


def _score_scale(answers: dict[str, Value], width: int, d_head: int) -> Options:
    """Removes the answer on the score scale; returns attention_scale where it is not our default d_head^-0.5."""
    said = answers.pop("score_scale", "root_of_d_head")
    scale = {"root_of_d_model": width**-0.5, "d_head": 1 / d_head, "nothing": 1.0}.get(str(said))
    return {} if scale is None or scale == d_head**-0.5 else {"attention_scale": scale}


class _Reader:
    """Reads the sizes and the layout from the tensors of one file."""

    def __init__(self, weights: Weights, n_layers: int) -> None:
        self.weights, self.n_layers = weights, n_layers
        self.shapes = {name: stored.shape for name, stored in weights.tensors.items()}
        self.heads, self.width, self.d_head = self.shapes["blocks.0.attn.W_Q"]
        self.grouped = "_" if "blocks.0.attn._W_K" in self.shapes else ""
        self.inner = self.shapes.get("blocks.0.mlp.W_in", (0, 0))[-1]
        self.tokens, (reads, self.outputs) = self.shapes["embed.W_E"][0], self.shapes["unembed.W_U"]
        if reads != self.width or self.shapes.get("unembed.b_U", (self.outputs,)) != (self.outputs,):
            self.outputs = self.tokens  # no head: the matching says which of its tensors does not fit
        self.normed = any(re.search(r"\.ln[12]\.w$|^ln_final\.w$", name) for name in self.shapes)
        self.shifted = any(re.search(r"\.ln[12]\.b$|^ln_final\.b$", name) for name in self.shapes)
        self.biased = any(".attn.b_" in name or ".attn._b_" in name for name in self.shapes)
        self.inner_biased = any(".mlp.b_" in name for name in self.shapes)
        self.unused = masks(weights)
        self.rotary: Options = {}
        for name in self.shapes:
            if name.endswith((".rotary_sin", ".rotary_cos")):
                self._rotary(name.rpartition(".")[0])
                self.unused[name] = N_("waves of rotary positions: they follow from their base")

    def layout(self) -> Layout:
        asked: list[Question] = []
        kind = "layer_norm" if self.shifted else None
        if kind is None:
            asked.append(NORM if self.normed else replace(ABSENT, usual="layer_norm" if self._is_centred() else "none"))
        if self.inner:
            asked.append(questions.ACTIVATION)
            asked.append(RESIDUAL)
        if not any(name.endswith(".attn.mask") for name in self.unused):
            asked.append(replace(questions.CAUSAL, usual=True))
        if "pos_embed.W_pos" not in self.shapes and not self.rotary:
            asked.append(replace(questions.POSITIONS, choices=("none", "alibi")))
        known: dict[str, Value] = {"n_heads": self.heads, "norm_order": "pre"}
        if not any(question.name == "causal" for question in asked):
            known["causal"] = True
        asked += [replace(questions.NORM_EPS, moot={"norm": ("none",)}), SCALE]
        if "pos_embed.W_pos" not in self.shapes:
            asked.append(questions.MAX_POSITIONS)
        if self.outputs < self.tokens:
            text = N_("Are the {n} logits those of the token ids 0 to {last}?", n=self.outputs, last=self.outputs - 1)
            asked.append(Question("outputs_are_tokens", text, (True, False)))
        return Layout(
            NAMES[0], tuple(asked), lambda answers: self.plan(dict(answers), kind), refuses=REFUSES, known=known
        )

    def plan(self, answers: dict[str, Value], kind: str | None) -> Plan:
        stack = "decoder" if bool(answers.pop("causal", True)) else "encoder"
        if answers.get("residual") == "parallel":
            raise CheckpointError(
                "VizFormer does not compute attention and feed-forward in parallel. Open the model with "
                "the code that it was trained with, and give it to vf.wrap, which records it."
            )
        norm = str(answers.pop("norm", kind))
        self.applied = norm != "none"
        self.predicts = bool(answers.pop("outputs_are_tokens", self.outputs == self.tokens))
        self.parts: list[Part] = [Part("embed.W_E", ("embedding.weight",))]
        self.made: dict[str, Made] = {}
        self.fills: dict[str, Callable[[Shape], Tensor]] = {}
        options: Options = {
            "vocab_size": self.tokens,
            "d_model": self.width,
            "n_heads": self.heads,
            "d_ff": self.inner or 1,
            f"n_{stack}_layers": self.n_layers,
            "norm": norm if self.applied else "layer_norm",
            "norm_order": "pre" if self.applied else "none",
            "final_norm": self.applied,
            "bias": self.inner_biased,
            "attention_bias": "all" if self.biased else "none",
            "feedforward": "gated" if "blocks.0.mlp.W_gate" in self.shapes else "plain",
            "tied_unembedding": not self.predicts,
            "logit_bias": self.predicts and ("unembed.b_U" in self.shapes or self.outputs < self.tokens),
            **self.rotary,
        }
        if self.heads * self.d_head != self.width:
            options["head_dim"] = self.d_head
        if self.grouped and len(keys := self.shapes["blocks.0.attn._W_K"]) == 3:
            options["n_kv_heads"] = keys[0]
        options |= _score_scale(answers, self.width, self.d_head)
        if "pos_embed.W_pos" in self.shapes:
            options |= {"positions": "learned", "max_positions": self.shapes["pos_embed.W_pos"][0]}
            self.parts.append(Part("pos_embed.W_pos", ("position_embedding.weight",)))
        for number in range(self.n_layers):
            self._layer(f"blocks.{number}", f"{stack}.layers.{number}", norm)
        self._norm("ln_final", f"{stack}.final_norm", norm)
        unused = dict(self.unused)
        if self.predicts:
            self._head()
        else:
            unused |= dict.fromkeys(self._of_head(), N_("a head that comes after the last layer"))
        assumed = tuple(self._assumed())
        return Plan({**options, **answers}, self.parts, self.predicts, {}, unused, self.fills, assumed, self.made)

    def _of_head(self) -> list[str]:
        return [name for name in ("unembed.W_U", "unembed.b_U") if name in self.shapes]

    def _head(self) -> None:
        """The head; tokens that it has no logit for get rows of 0, and a bias that nothing outweighs."""
        weight, *bias = self._of_head()
        self._turned(weight, "unembedding.weight")
        if lacking := self.tokens - self.outputs:
            self.made[weight] = Made(
                (weight,), (self.tokens, self.width), lambda read: F.pad(read[0].T, (0, 0, 0, lacking))
            )
            never = torch.full((lacking,), NEVER)
            if bias:
                self.made[bias[0]] = Made(
                    (bias[0],), (self.tokens,), lambda read: torch.cat([read[0], never.to(read[0].dtype)])
                )
            else:
                self.fills["logit_bias"] = lambda shape: torch.cat([torch.zeros(self.outputs), never])
        self.parts += [Part(name, ("logit_bias",)) for name in bias]

    def _layer(self, theirs: str, ours: str, norm: str) -> None:
        for letter in "QKV":
            grouped = self.grouped if letter in "KV" else ""
            name = f"{theirs}.attn.{grouped}W_{letter}"
            self._heads(name, f"{ours}.self_attention.W_{letter}.weight", columns=False)
            if self.biased:
                self._flat(f"{theirs}.attn.{grouped}b_{letter}", f"{ours}.self_attention.W_{letter}.bias")
        self._heads(f"{theirs}.attn.W_O", f"{ours}.self_attention.W_O.weight", columns=True)
        if self.biased:
            self.parts.append(Part(f"{theirs}.attn.b_O", (f"{ours}.self_attention.W_O.bias",)))
        self._norm(f"{theirs}.ln1", f"{ours}.self_norm", norm)
        if not self.inner:
            kinds = ("weight", "bias") if self.inner_biased else ("weight",)
            self.fills |= {f"{ours}.feedforward.{own}.{kind}": zeros for own in ("W_in", "W_out") for kind in kinds}
            self._norm(f"{theirs}.ln2", f"{ours}.feedforward_norm", norm, there=False)
            return
        for own in ("in", "out", "gate"):
            if f"{theirs}.mlp.W_{own}" in self.shapes or own != "gate":
                self._turned(f"{theirs}.mlp.W_{own}", f"{ours}.feedforward.W_{own}.weight")
                if self.inner_biased:
                    self.parts.append(Part(f"{theirs}.mlp.b_{own}", (f"{ours}.feedforward.W_{own}.bias",)))
        self._norm(f"{theirs}.ln2", f"{ours}.feedforward_norm", norm)

    def _heads(self, name: str, target: str, *, columns: bool) -> None:
        """[head, d_model, d_head] -> [head * d_head, d_model]; of the output, [head, d_head, d_model] -> its transpose."""
        shape = self.shapes.get(name, ())
        if len(shape) == 3:
            heads, first, last = shape

            def build(tensors: Sequence[Tensor]) -> Tensor:
                rows = tensors[0] if columns else tensors[0].transpose(1, 2)
                return rows.flatten(0, 1).T if columns else rows.flatten(0, 1)

            whole: Shape = (last, heads * first) if columns else (heads * last, first)
            self.made[name] = Made((name,), whole, build)
        self.parts.append(Part(name, (target,)))

    def _turned(self, name: str, target: str) -> None:
        if len(self.shapes.get(name, ())) == 2:
            self.made[name] = turned(name, self.shapes[name])
        self.parts.append(Part(name, (target,)))

    def _flat(self, name: str, target: str) -> None:
        if len(shape := self.shapes.get(name, ())) == 2:
            self.made[name] = reshaped(name, (shape[0] * shape[1],))
        self.parts.append(Part(name, (target,)))

    def _norm(self, theirs: str, ours: str, norm: str, *, there: bool = True) -> None:
        kinds = (("weight", "w"), ("bias", "b")) if norm == "layer_norm" else (("weight", "w"),)
        for own, leaf in kinds if self.applied else ():
            if self.normed and there and (leaf == "w" or self.shifted):
                self.parts.append(Part(f"{theirs}.{leaf}", (f"{ours}.{own}",)))
            else:
                self.fills[f"{ours}.{own}"] = zeros if own == "bias" else torch.ones

    def _is_centred(self) -> bool:
        """Whether the mean is taken off every embedding, as TransformerLens does where it folds LayerNorms."""
        table = self.weights.tensors["embed.W_E"].read().float()
        return bool(table.mean(1).abs().max() < 1e-4 * table.std())

    def _rotary(self, attention: str) -> None:
        """The base of rotary positions, from the waves at position 1."""
        names = [f"{attention}.rotary_{wave}" for wave in ("sin", "cos")]
        stored = [self.weights.tensors.get(name) for name in names]
        if all(one is not None and len(one.shape) == 2 and one.shape[0] > 1 and one.shape[1] >= 4 for one in stored):
            sin, cos = (one.read()[1].double() for one in stored if one is not None)
            angles, n = torch.atan2(sin, cos), len(sin) // 2
            rates = angles[:n]
            if 2 * n == self.d_head and torch.allclose(rates, angles[n:]) and bool((rates > 0).all()):
                theta = float(rates[-1]) ** (-n / (n - 1))
                expected = theta ** (-torch.arange(n).double() / n)
                if torch.allclose(rates, expected, rtol=1e-3):
                    rounded = float(round(theta, -1))
                    self.rotary = {
                        "positions": "rope",
                        "rope_theta": rounded if abs(theta - rounded) < 1e-3 * theta else theta,
                    }
                    return
        raise CheckpointError(
            "{file} has rotary positions ({names}) that do not rotate the two halves of a head with one "
            "base: VizFormer does not open them.",
            file=self.weights.where,
            names=", ".join(map(shown, names)),
        )

    def _assumed(self) -> Iterator[Message]:
        yield (
            N_("the names are those of TransformerLens: norms before the sublayers and after the last layer")
            if self.applied
            else N_("the names are those of TransformerLens, and there are no norms")
        )
        if not self.normed and self.applied:
            yield N_(
                "there are no weights of norms, as TransformerLens folds them into what follows: the norms scale by 1"
            )
        if not self.inner:
            yield N_("the layers have no feed-forward network: the one shown is made of zeros and adds nothing")
        if not self.predicts:
            head = self._of_head()
            yield left_out("unembed", head, self.weights)
        elif self.outputs < self.tokens:
            yield N_(
                "{name} computes a logit for each of the token ids 0 to {last}: the model reads the "
                "other tokens but never predicts them; their logit is {never}",
                name=shown("unembed.W_U"),
                last=self.outputs - 1,
                never=f"{NEVER:,.0f}",
            )
        if "pos_embed.W_pos" in self.shapes:
            yield N_("{name} is added to the embeddings: row i at position i", name=shown("pos_embed.W_pos"))

"""State dicts of GPT-2, nanoGPT and minGPT: a decoder, pre-norm, learned positions.

GPT-2 of `transformers` stores its linear layers transposed ([in, out]); nanoGPT and later minGPT have the same names
with [out, in]; minGPT of 2020 has names of its own, and query, key and value apart.

Source: Radford et al. 2019 and the weights published with it; the modules of github.com/karpathy/nanoGPT and minGPT.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor

from vizformer.checkpoints.bare.derived_tensors import Made, masks, reshaped
from vizformer.checkpoints.bare.layout import (
    UNUSED_NORM,
    Layout,
    Plan,
    is_one,
    layers_of,
    matrix,
    no_norm_biases,
    of_losses,
    same_numbers,
)
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear
from vizformer.errors import CheckpointError
from vizformer.messages import N_

NAMES = ("GPT-2", "nanoGPT", "minGPT")
LAYER = {
    "attn.c_attn": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.c_proj": ["self_attention.W_O"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}
OLD_LAYER = {
    **attention("attn.{}", "query key value proj"),
    "mlp.0": ["feedforward.W_in"],
    "mlp.2": ["feedforward.W_out"],
}


def recognise(weights: Weights) -> Layout | None:
    """The layout, if the tensors have its names."""
    new = layers_of(weights.tensors, r"(?P<prefix>(?:[\w.]*\.)?)h\.(?P<index>\d{1,4})\.attn\.c_attn\.weight")
    if len(new) == 1:
        ((prefix, n_layers),) = new.items()
        return _new(weights, prefix, n_layers) if f"{prefix}h.0.mlp.c_fc.weight" in weights.tensors else None
    old = layers_of(weights.tensors, r"(?P<prefix>(?:[\w.]*\.)?)blocks\.(?P<index>\d{1,4})\.attn\.query\.weight")
    if len(old) == 1:
        ((prefix, n_layers),) = old.items()
        return _old(weights, prefix, n_layers) if f"{prefix}blocks.0.mlp.0.weight" in weights.tensors else None
    return None


def _new(weights: Weights, prefix: str, n_layers: int) -> Layout:
    vocab_size, d_model = matrix(weights, f"{prefix}wte.weight")
    rows, columns = matrix(weights, f"{prefix}h.0.attn.c_attn.weight")
    transposed = (rows, columns) == (d_model, 3 * d_model)
    inner = matrix(weights, f"{prefix}h.0.mlp.c_fc.weight")
    options = dict(
        vocab_size=vocab_size,
        d_model=d_model,
        d_ff=inner[1 if transposed else 0],
        n_decoder_layers=n_layers,
        bias=f"{prefix}h.0.attn.c_attn.bias" in weights.tensors,
        max_positions=_positions(weights, f"{prefix}wpe.weight"),
    )
    parts = [
        Part(f"{prefix}wte.weight", ("embedding.weight",)),
        Part(f"{prefix}wpe.weight", ("position_embedding.weight",)),
        *layers(
            LAYER,
            f"{prefix}h.{{}}",
            "decoder.layers.{}",
            n_layers,
            bias=bool(options["bias"]),
            transposed=list(LAYER) if transposed else (),
        ),
    ]
    fills = no_norm_biases(parts, weights, _norms(f"{prefix}h.{{}}.ln_{{}}", f"{prefix}ln_f", n_layers))
    # Transposed matrices are those of `transformers`, whose GPT-2 has this function; nanoGPT and minGPT had both.
    activation = replace(questions.ACTIVATION, usual="gelu_tanh") if transposed else questions.ACTIVATION
    name = "GPT-2" if transposed else "nanoGPT / minGPT"
    head = f"{prefix.removesuffix('transformer.')}lm_head"
    if f"{head}.weight" not in weights.tensors:
        head = "lm_head"
    return _layout(name, weights, options, parts, fills, f"{prefix}wte.weight", head, activation)


def _positions(weights: Weights, name: str) -> int:
    if name not in weights.tensors:
        raise CheckpointError(
            "{file} lacks {name}, the learned position embeddings of GPT-2. Rotary positions have no "
            "tensors: a model with them is another one, which this layout does not describe.",
            file=weights.where,
            name=shown(name),
        )
    return matrix(weights, name)[0]


def _old(weights: Weights, prefix: str, n_layers: int) -> Layout:
    vocab_size, d_model = matrix(weights, f"{prefix}tok_emb.weight")
    table = f"{prefix}pos_emb"
    stored = weights.tensors.get(table)
    shape = stored.shape if stored is not None else ()
    rows = shape[1] if len(shape) == 3 and shape[0] == 1 else 1
    options = dict(
        vocab_size=vocab_size,
        d_model=d_model,
        d_ff=matrix(weights, f"{prefix}blocks.0.mlp.0.weight")[0],
        n_decoder_layers=n_layers,
        bias=f"{prefix}blocks.0.attn.query.bias" in weights.tensors,
        max_positions=rows,
    )
    parts = [
        Part(f"{prefix}tok_emb.weight", ("embedding.weight",)),
        Part(table, ("position_embedding.weight",)),
        *layers(OLD_LAYER, f"{prefix}blocks.{{}}", "decoder.layers.{}", n_layers, bias=bool(options["bias"])),
    ]
    fills = no_norm_biases(parts, weights, _norms(f"{prefix}blocks.{{}}.ln{{}}", f"{prefix}ln_f", n_layers))
    made = {table: reshaped(table, shape[1:])} if len(shape) == 3 and shape[0] == 1 else {}
    names = f"{prefix}tok_emb.weight", f"{prefix}head"
    return _layout("minGPT", weights, options, parts, fills, *names, questions.ACTIVATION, made)


def _norms(layer: str, last: str, n_layers: int) -> dict[str, str]:
    ours = {1: "self_norm", 2: "feedforward_norm"}
    norms = {
        layer.format(i, number): f"decoder.layers.{i}.{name}" for i in range(n_layers) for number, name in ours.items()
    }
    return {**norms, last: "decoder.final_norm"}


def _layout(
    name: str,
    weights: Weights,
    options: Mapping[str, object],
    parts: list[Part],
    fills: Mapping[str, Callable[..., Tensor]],
    embedding: str,
    head: str,
    activation: Question,
    made: Mapping[str, Made] | None = None,
) -> Layout:
    table = f"{head}.weight"
    assumed = [
        N_(
            "the names are those of {layout}: norms before the sublayers and after the last layer, and "
            "every position sees only itself and earlier ones (causal mask)",
            layout=name,
        )
    ]
    ties: dict[str, str] = {}
    tied = True
    if table not in weights.tensors:
        assumed.append(
            N_(
                "the file has no output matrix: logits are computed with the embedding table (weight tying), "
                "as GPT-2 does"
            )
        )
    elif same_numbers(weights, embedding, table):
        ties = {table: embedding}
    else:
        tied = False
        parts = [*parts, *linear(head, "unembedding", bias=False)]
    biased = f"{head}.bias" in weights.tensors
    if biased:
        parts = [*parts, Part(f"{head}.bias", ("logit_bias",))]

    def plan(answers: Mapping[str, Value]) -> Plan:
        unused, left = masks(weights) | of_losses(weights), parts
        filled = {} if answers.get("norm") == "rms_norm" else fills
        if not answers.get("final_norm", True):
            left = [part for part in parts if not part.targets[0].startswith("decoder.final_norm")]
            unused |= {part.source: UNUSED_NORM for part in parts if part not in left}
        return Plan(
            {
                **options,
                "positions": "learned",
                "norm_order": "pre",
                "final_norm": True,
                "tied_unembedding": tied,
                "logit_bias": biased,
                **answers,
            },
            left,
            True,
            ties,
            unused,
            filled,
            tuple(assumed),
            made or {},
        )

    asked = [questions.n_heads(int(str(options["d_model"]))), activation, questions.NORM_EPS]
    if fills:
        asked.append(questions.BARE_NORM)
    last = {
        part.targets[0].rpartition(".")[2]: part.source for part in parts if "decoder.final_norm" in part.targets[0]
    }
    if is_one(weights, last["weight"], last.get("bias")):
        asked.append(questions.is_applied(shown(last["weight"].rpartition(".")[0])))
    return Layout(name, tuple(asked), plan)

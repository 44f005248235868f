"""State dicts of llama2.c: LLaMA under the names of Meta's code, with the fields of that code in the file.

Rotary positions turn neighbouring numbers of a head here, 2m and 2m + 1; `transformers` and we turn m and m + d/2: the
rows of W_Q and W_K are brought into that order.  The width of the feed-forward layers follows from two fields:

    w = 2/3 * 4 dim,  up to the next multiple of multiple_of

Source: github.com/karpathy/llama2.c (model.py, train.py).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from vizformer.checkpoints.bare.layout import Layout, Plan, layers_of, matrix, same_numbers
from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors.questions import MAX_POSITIONS, NORM_EPS, Said, Value
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear, neighbours_apart
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAME = "llama2.c"
_LAYER = {
    **attention("attention.{}", "wq wk wv wo"),
    "feed_forward.w1": ["feedforward.W_gate"],
    "feed_forward.w2": ["feedforward.W_out"],
    "feed_forward.w3": ["feedforward.W_in"],
    "attention_norm": ["self_norm"],
    "ffn_norm": ["feedforward_norm"],
}
_NEEDED = ("dim", "n_layers", "n_heads", "multiple_of")
_SIZES = (*_NEEDED, "n_kv_heads", "hidden_dim", "vocab_size")
_OTHERS = ("norm_eps", "max_seq_len", "dropout")  # asked as questions, or of the training
_LARGEST = 2**24


def recognise(weights: Weights, said: Said) -> Layout | None:
    """The layout, if the tensors have its names and its fields lie in the file."""
    names = weights.tensors
    n_layers = layers_of(names, r"(?P<prefix>)layers\.(?P<index>\d{1,4})\.attention\.wq\.weight").get("", 0)
    where, fields = next(((w, f) for w, f in said.items() if _is_of_the_code(f)), ("", {}))
    if not (where and n_layers and {"tok_embeddings.weight", "layers.0.feed_forward.w3.weight"} <= names.keys()):
        return None
    assumption = N_(
        "the names are those of llama2.c, whose rotary positions rotate neighbouring numbers, with a base of 10000; {where} "
        "gives the rest",
        where=shown(where),
    )
    plan = partial(_plan, weights, _options(weights, fields, n_layers, where), assumption)
    return Layout(NAME, (NORM_EPS, MAX_POSITIONS), plan)


def _is_of_the_code(fields: Mapping[str, Any]) -> bool:
    """Whether all fields are those of the code, each of its kind: otherwise they are of another model."""

    def right(name: str, value: object) -> bool:
        if name in _SIZES:
            return (value is None and name not in _NEEDED) or (type(value) is int and 0 < value < _LARGEST)
        return name in _OTHERS and (value is None or type(value) in (int, float))

    return all(name in fields for name in _NEEDED) and all(right(name, value) for name, value in fields.items())


def _options(weights: Weights, fields: Mapping[str, Any], n_layers: int, where: str) -> Options:
    """The options that the fields give, checked against the tensors."""
    dim, heads, multiple = (fields[name] for name in ("dim", "n_heads", "multiple_of"))
    kv_heads, d_head = fields.get("n_kv_heads") or heads, dim // heads
    hidden = fields.get("hidden_dim") or -(-int(2 * 4 * dim / 3) // multiple) * multiple
    rows, columns = matrix(weights, "tok_embeddings.weight")
    queries, keys, gates = (
        matrix(weights, f"layers.0.{name}.weight")[0] for name in ("attention.wq", "attention.wk", "feed_forward.w1")
    )
    found = {
        "dim": (dim, columns),
        "n_layers": (fields["n_layers"], n_layers),
        "n_heads * head_dim": (heads * d_head, queries),
        "n_kv_heads * head_dim": (kv_heads * d_head, keys),
        "ffn_dim": (hidden, gates),
        "vocab_size": (fields.get("vocab_size") or rows, rows),
    }
    problems = [
        N_("{name} is {said}, and {found} in the tensors", name=name, said=wanted, found=there)
        for name, (wanted, there) in found.items()
        if wanted != there
    ]
    if problems:
        raise CheckpointError(
            "{where} does not fit {file}: {problems}. Save both again from one training.",
            where=shown(where),
            file=shown(weights.where),
            problems=listed(problems),
        )
    return dict(
        vocab_size=rows,
        d_model=dim,
        d_ff=gates,
        n_heads=heads,
        n_kv_heads=None if kv_heads == heads else kv_heads,
        n_decoder_layers=n_layers,
        positions="rope",
        norm="rms_norm",
        norm_order="pre",
        final_norm=True,
        feedforward="gated",
        activation="silu",
        bias=False,
        dropout=0.0,
    )


def _plan(weights: Weights, options: Options, assumption: Message, answers: Mapping[str, Value]) -> Plan:
    tied = "output.weight" not in weights.tensors or same_numbers(weights, "tok_embeddings.weight", "output.weight")
    heads = {".wq.weight": options["n_heads"], ".wk.weight": options["n_kv_heads"] or options["n_heads"]}
    parts = [
        Part("tok_embeddings.weight", ("embedding.weight",)),
        *layers(_LAYER, "layers.{}", "decoder.layers.{}", options["n_decoder_layers"], bias=False),
        *linear("norm", "decoder.final_norm", bias=False),
        *([] if tied else linear("output", "unembedding", bias=False)),
    ]
    d_head = options["d_model"] // options["n_heads"]
    parts = [
        Part(part.source, part.targets, order=partial(neighbours_apart, heads[end], d_head))
        if (end := part.source[-len(".wq.weight") :]) in heads
        else part
        for part in parts
    ]
    follow = N_("the angles of the rotary positions: they follow from rope_theta")
    return Plan(
        {**options, "tied_unembedding": tied, **answers},
        parts,
        ties={"output.weight": "tok_embeddings.weight"} if tied else {},
        unused={name: follow for name in weights.tensors if name in ("freqs_cos", "freqs_sin")},
        assumptions=(assumption,),
    )

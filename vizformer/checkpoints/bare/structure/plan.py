"""The model that the tensors are under given answers: its options, and what becomes of every tensor."""

from collections.abc import Mapping

import torch

from vizformer.checkpoints.bare.layout import UNUSED_NORM, Plan, of_losses
from vizformer.checkpoints.bare.layouts.tables import alone
from vizformer.checkpoints.bare.structure.arithmetic import Sizes
from vizformer.checkpoints.bare.structure.assumptions import norms_beside, read_by_role
from vizformer.checkpoints.bare.structure.block_norms import norms_of
from vizformer.checkpoints.bare.structure.derived_tensors import rolled
from vizformer.checkpoints.bare.structure.findings import Found, tables
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.bare.structure.open_questions import NORMED_STREAM, score_scale
from vizformer.checkpoints.bare.structure.outer_parts import WIDER, one_sided
from vizformer.checkpoints.bare.structure.parts import Layers, Reading, add
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.errors import CheckpointError
from vizformer.messages import N_


def make_plan(found: Found, kind: str | Question, answers: dict[str, Value]) -> Plan:
    """What the tensors become; `kind` is the norm, where it was not asked for."""
    sizes, norms = found.sizes, found.norms
    _require_one_order(found, answers)
    source = answers.pop("source_embedding", None)
    found_tables = tables(found, None if source is None else str(source))
    causal = bool(answers.pop("causal", bool(found.buffers.causal)))
    names = ["encoder", "decoder"] if found.both else ["decoder" if causal else "encoder"]
    norm = str(answers.pop("norm", kind))
    if norm == "none":
        norm, answers["norm_order"] = "layer_norm", "none"
    normed = answers.get("norm_order") != "none"
    first_norm, place = answers.pop("first_norm", None), answers.pop("norm_place", None)
    before: Mapping[int, Module | None]
    after: Mapping[int, Module | None]
    if found.every_norm() or found.qk_normed:
        before = (norms.first if answers.pop("embedding_norm", True) else {}) or (
            norms.open if place == "first" else {}
        )
        after = (norms.last if answers.pop("final_norm", True) else {}) or (norms.open if place == "last" else {})
    else:  # norms without weights
        before = dict.fromkeys(range(len(names))) if answers.pop("embedding_norm", False) else {}
        after = dict.fromkeys(range(len(names))) if answers.pop("final_norm", False) else {}
    shifted = answers.get("norm_order") == NORMED_STREAM
    for beside in (before, after if shifted else {}):
        if found.both and len(beside) == 1:
            raise CheckpointError(one_sided(found.weights.where, [module.path for module in beside.values() if module]))
    if shifted:
        _require_one_norm(found, before)
        answers["norm_order"] = "post"
    for decided in ("normed_embeddings", "layer_applied", "softmax"):  # other answers than the usual one are refused
        answers.pop(decided, None)
    tied = bool(answers.pop("tied", False))
    used = [*filter(None, [*before.values(), *after.values()]), *(found.layer_norms() if normed else [])]
    left_out = {name for module in found.every_norm() for name in module.names}
    left_out -= {name for module in used for name in module.names}
    row, over = answers.pop("segment_row", 0), answers.pop("attention_over", "tokens")
    segments = "" if row == "none" else found.segments
    later, begun = found_tables.begun(
        sizes.width, answers.pop("first_position", 0), answers.pop("scaled_rows", "tokens")
    )
    logit_options, logit_made = found_tables.divided(sizes.width, answers.pop("logit_scale", "nothing"))
    options: Options = {
        "d_model": sizes.width,
        "vocab_size": sizes.width,
        "d_ff": sizes.inner or 1,
        "feedforward": "gated" if "W_gate" in found.blocks[0].feedforward else "plain",
        "norm": norm,
        "final_norm": bool(after) and not shifted,
        "final_norm_stack": names[next(iter(after))] if found.both and len(after) == 1 else "each",
        "last_norm": bool(after) or not shifted,
        "embedding_norm": bool(before) or shifted,
        "n_segments": found.weights.tensors[segments].shape[0] if segments else 0,
        **alone(over),
        **_biases(found.biases),
        **found_tables.options,
        **logit_options,
        **later,
    }
    n_heads = _n_heads(found, answers)
    options |= {
        "n_heads": n_heads,
        **_head_options(sizes, n_heads),
        **score_scale(answers, sizes.width, max(1, sizes.queries // n_heads)),
    }
    options |= _positions(found, n_heads, answers)
    if not (normed or before or after or options["qk_norm"]):  # then no kind of norm is one
        options["norm"] = "layer_norm"
        answers.pop("norm_eps", None)
    rows, heads = str(answers.pop("qkv_rows", "q_k_v")), answers.pop("head_rows", "head_by_head")
    in_turn = heads in ("in_turn", "split_in_turn")
    if in_turn and rows.startswith("by_head"):
        raise CheckpointError(
            "head_rows={heads}: with qkv_rows={rows} the numbers lie head by head in {file}. Answer head_by_head, or "
            "joined_in_turn where what the heads have made is joined in turn.",
            heads=str(heads),
            rows=rows,
            file=found.weights.where,
        )
    how = Reading(
        sizes,
        n_heads,
        {False: bool(found.turned[False]), True: found.turned[True] or answers.pop("matrices", None) == "x_W"},
        in_turn,
        rows,
        "" if rows.startswith("by_") or rows == "q_k_v" else rows,
        heads in ("in_turn", "joined_in_turn"),
        options.pop("pairs", False),
        *_our_biases(found.biases),
        normed,
        norm != "rms_norm",
        any(module.bias is not None for module in found.every_norm()),
        options["qk_norm"],
    )
    layers = Layers(made={**found.made, **logit_made, **begun})
    gate = answers.pop("gate", None)
    for number, (stack, block, name) in enumerate(zip(found.stacks, found.blocks, names, strict=True)):
        chosen = block.norms
        if block.pair is not None and first_norm is not None:
            one, other = block.pair
            order = (one, other) if first_norm == one else (other, one)
            chosen = dict(zip(norms_of(block.attentions, bool(block.feedforward)), order, strict=True))
        first = "decoder_embedding_norm" if number else "embedding_norm"
        add(layers, stack, block.with_gate(gate), chosen, name, how, first if shifted else "")
        if number in after:
            last = f"layers.{len(stack.layers) - 1}.feedforward_norm" if shifted else "final_norm"
            layers.norm(after[number], f"{name}.{last}", sizes.width, how)
        if number in before:
            layers.norm(before[number], first, sizes.width, how)
    if found.both and (before or shifted):
        options["stack_inputs"] = "own"
        if not found_tables.options.get("stack_inputs"):
            found_tables.parts = [_for_both(part) for part in found_tables.parts]
    if segments:
        if row:
            layers.made[segments] = rolled(segments, found.weights.tensors[segments].shape, int(row))
        layers.parts.append(Part(segments, ("segment_embedding.weight",)))
    fills = layers.fills
    if found_tables.embedding is None:
        fills["embedding.weight"] = lambda shape: torch.eye(*shape)
    depths = {f"n_{name}_layers": len(stack.layers) for stack, name in zip(found.stacks, names, strict=True)}
    return Plan(
        {**options, **depths, **answers},
        layers.parts + found_tables.parts,
        found_tables.predicts or tied,
        found_tables.ties,
        {
            **found.buffers.unused,
            **found_tables.unused,
            **of_losses(found.weights),
            **dict.fromkeys(left_out, UNUSED_NORM),
            **({found.segments: N_("the table of segments, of which no row is added")} if row == "none" else {}),
        },
        found_tables.unplaced,
        fills,
        (*read_by_role(found, found_tables, tied), *norms_beside(before, after), *([SHIFTED] if shifted else [])),
        layers.made,
    )


SHIFTED = N_(
    "the row that a sublayer reads and adds to is normalised: each norm is therefore shown after the sum before it, and the "
    "first one after the embeddings"
)


def _require_one_norm(found: Found, before: Mapping[int, Module | None]) -> None:
    """Raises:
    CheckpointError: the embeddings have a norm of their own before that of the first sublayer.
    """
    if before and (first := before[0]) is not None:
        raise CheckpointError(
            "norm_order={order}: {file} would normalise the embeddings twice, by {norm} and before the first sublayer. "
            "Such models do not open.",
            order=NORMED_STREAM,
            file=found.weights.where,
            norm=shown(first.path),
        )


def _require_one_order(found: Found, answers: dict[str, Value]) -> None:
    """Raises:
    CheckpointError: embeddings are scaled, and made with a bias, which may be added before or after.
    """
    for name, recipe in found.made.items():
        if name.endswith(WIDER) and len(recipe.sources) > 2 and answers.get("scaled_embedding"):
            raise CheckpointError(
                "scaled_embedding=true: {bias} may be added to the embeddings of {file} before or after they are "
                "scaled. Save what is added to the positions as one table of embeddings, and answer false.",
                bias=shown(recipe.sources[2]),
                file=found.weights.where,
            )


def _for_both(part: Part) -> Part:
    """One table of positions, where each stack has a place for its own."""
    if part.targets != ("position_embedding.weight",):
        return part
    return Part(part.source, (*part.targets, "decoder_position_embedding.weight"), shared=True)


def _n_heads(found: Found, answers: dict[str, Value]) -> int:
    said = answers.pop("n_heads", None)
    if said is not None:
        return int(said)
    if found.sizes.heads is not None:
        return found.sizes.heads
    norm = found.blocks[0].attentions["self_attention"].q_norm
    return max(1, found.sizes.queries // found.stacks[0].layers[0][norm].shape[0])


def _head_options(sizes: Sizes, n_heads: int) -> Options:
    d_head = max(1, sizes.queries // n_heads)
    options: Options = {}
    if sizes.queries != sizes.width:
        options["head_dim"] = d_head
    if sizes.keys != sizes.queries:
        options["n_kv_heads"] = sizes.keys // d_head
    return options


def _positions(found: Found, n_heads: int, answers: dict[str, Value]) -> Options:
    options: Options = questions.waves(answers)
    if found.buffers.pairs:
        answers["positions"] = "rope_pairs"
    said, theta = answers.get("positions"), answers.pop("rope_theta", None)
    if said in ("rope", "rope_pairs") and theta is not None:
        options["rope_theta"] = float(theta)
    if said == "rope_pairs":
        answers["positions"] = "rope"
        options["pairs"] = True
    if said in ("rope", "rope_pairs") and found.buffers.theta is not None:
        options["rope_theta"] = found.buffers.theta
        if found.buffers.turned != found.sizes.queries // n_heads:
            options["rope_dims"] = found.buffers.turned
    options["qk_norm"] = bool(found.blocks[0].attentions["self_attention"].q_norm or answers.pop("qk_norm", False))
    return options


def _our_biases(found: tuple[bool, bool, bool]) -> tuple[bool, bool, bool]:
    """Those that our block has: where the result has a bias, queries, keys and values have one, which may be 0."""
    qkv, out, inner = found
    return qkv or out, out, inner


def _biases(found: tuple[bool, bool, bool]) -> Options:
    qkv, out, inner = _our_biases(found)
    if qkv == out:
        return {"bias": inner, "attention_bias": "same" if inner == qkv else ("all" if qkv else "none")}
    return {"bias": inner, "attention_bias": "qkv"}

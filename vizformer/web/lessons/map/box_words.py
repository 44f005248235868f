"""What the boxes of the lesson "The map" say, in the reader's language, and where each of them leads."""

from collections.abc import Sequence

from vizformer.analysis.costs.model_boxes import Box
from vizformer.components import architecture
from vizformer.config import ModelConfig
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.lessons.map import box_sentences
from vizformer.web.words.i18n import _

_COLOURS = {
    "attention": "attention",
    "cross": "attention",
    "mask": "attention",
    "rotation": "attention",
    "alibi": "attention",
    "relative": "attention",
    "disentangled": "attention",
    "feedforward": "feedforward",
    "transform": "feedforward",
    "norm": "norm",
    "add": "norm",
    "add_norm": "norm",
    "embedding": "table",
    "positions": "table",
    "segments": "table",
    "projection": "table",
    "unembedding": "table",
    "logit_bias": "table",
}
_LEADS_TO: dict[str, tuple[Entry, ...]] = {
    "tokens": (sitemap.TOKENS,),
    "embedding": (sitemap.TOKENS,),
    "segments": (sitemap.TOKENS,),
    "projection": (sitemap.TOKENS,),
    "positions": (sitemap.POSITIONS,),
    "rotation": (sitemap.POSITIONS,),
    "alibi": (sitemap.POSITIONS,),
    "relative": (sitemap.POSITIONS,),
    "disentangled": (sitemap.POSITIONS, sitemap.LAYER),
    "attention": (sitemap.QKV, sitemap.HEADS),
    "mask": (sitemap.MASKS,),
    "cross": (sitemap.QKV, sitemap.MASKS),
    "feedforward": (sitemap.BLOCK, sitemap.LAYER),
    "norm": (sitemap.BLOCK, sitemap.LAYER),
    "add": (sitemap.BLOCK, sitemap.LAYER),
    "add_norm": (sitemap.BLOCK, sitemap.LAYER),
    "softmax": (sitemap.GENERATION,),
}


def leads_to(box: Box, config: ModelConfig) -> tuple[Entry, ...]:
    """The lessons and pages that take the box apart."""
    if box.kind == "softmax" and config.architecture == "encoder-only":
        return (sitemap.BLANKS,)
    return _LEADS_TO.get(box.kind, (sitemap.LAYER,))


def title(box: Box, config: ModelConfig) -> str:
    """What is written on the box."""
    rms = config.norm == "rms_norm"
    return {
        "tokens": _("Tokens"),
        "embedding": _("Embedding"),
        "segments": _("Add segments"),
        "projection": _("Project"),
        "positions": _("Add positions"),
        "norm": _("RMSNorm") if rms else _("LayerNorm"),
        "attention": _("Self-attention"),
        "cross": _("Cross-attention"),
        "mask": _("causal mask") if box.section == "decoder" else _("window"),
        "rotation": _("rotate q, k"),
        "alibi": _("ALiBi bias"),
        "relative": _("T5 bias"),
        "disentangled": _("distances"),
        "feedforward": _("Feed-forward") if config.n_experts is None else _("Mixture of experts"),
        "add": _("Add"),
        "add_norm": _("Add & RMSNorm") if rms else _("Add & LayerNorm"),
        "transform": _("Transform"),
        "unembedding": _("Unembedding"),
        "logit_bias": _("Add biases"),
        "softmax": _("Softmax"),
    }[box.kind]


def shape(dims: Sequence[int]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def count(box: Box) -> str:
    """Its parameters, as they are written on it."""
    if box.shared:
        return _("shared")
    if not box.copy:
        return ""
    return f"{box.copies} × {box.copy:,}" if box.copies > 1 else f"{box.copy:,}"


def columns(boxes: Sequence[Box], config: ModelConfig) -> list[architecture.Column]:
    """The drawing: a column for each stack; the prediction belongs to the last one."""
    sections = list(dict.fromkeys(box.section for box in boxes if box.section != "prediction"))
    found: list[architecture.Column] = []
    memory = [box.key for box in boxes if box.section == "encoder"][-1:] if len(sections) == 2 else []
    names = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    for section in sections:
        last = section == sections[-1]
        own = [box for box in boxes if box.section == section or (last and box.section == "prediction")]
        layers = max(box.copies for box in own)
        found.append(
            {
                "title": names[section],
                "frame": _("× {layers} layers", layers=layers) if layers > 1 else _("1 layer"),
                "boxes": [_drawn(box, config, memory) for box in own],
            }
        )
    return found


def _drawn(box: Box, config: ModelConfig, memory: Sequence[str]) -> architecture.Box:
    return {
        "key": box.key,
        "kind": _COLOURS.get(box.kind, "plain"),
        "title": title(box, config),
        "shape": shape(box.output),
        "count": count(box),
        "note": _("{title}: {about}", title=title(box, config), about=box_sentences.about(box, config)),
        "framed": box.repeated,
        "inside": box.inside,
        "skip": box.skip,
        "fed_by": box.fed_by,
        "source": memory[0] if memory and box.kind == "cross" else "",
    }


def parameters(box: Box, total: int) -> str:
    """How many numbers of the box were learned; Markdown."""
    if box.shared:
        return _("No parameters of its own: it uses a table that is counted where it serves first.")
    if not box.copy:
        return _("No parameters: nothing here is learned.")
    share = f"{box.parameters / total:.1%}"
    if box.others:
        return _(
            "{copies} layers × {copy:,}, and {others:,} of the layers without experts: **{count:,}** parameters, {share} of "
            "the model's {total:,}.",
            copies=box.copies,
            copy=box.copy,
            others=box.others,
            count=box.parameters,
            share=share,
            total=total,
        )
    if box.copies == 1:
        return _(
            "**{count:,}** parameters, {share} of the model's {total:,}.",
            count=box.parameters,
            share=share,
            total=total,
        )
    return _(
        "{copies} layers × {copy:,} = **{count:,}** parameters, {share} of the model's {total:,}.",
        copies=box.copies,
        copy=box.copy,
        count=box.parameters,
        share=share,
        total=total,
    )

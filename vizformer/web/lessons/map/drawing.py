"""A laboratory of the lesson The map: the whole model at work, its boxes with live shapes, and what the chosen box is."""

from collections.abc import Sequence

import streamlit as st

from vizformer.analysis.costs import model_boxes
from vizformer.analysis.costs.model_boxes import Box
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.components.whole_model_picture import ENGLISH, Press
from vizformer.config import ModelConfig
from vizformer.messages import ranges
from vizformer.options import ACTIVATION_NAMES
from vizformer.web.catalogue import model_cache, model_list, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson, map_words
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.widgets.whole_model import picture, saved_page
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _, translate, words

lab = Laboratory("map", "drawing", wide=True)
_DRAWING, _SWITCH = "map.drawing", "map.switch"
ARCHITECTURES = ("encoder-decoder", "decoder-only", "encoder-only")
_LAYER = (sitemap.BLOCK, sitemap.LAYER)
BOXES: dict[str, tuple[Entry, ...]] = {
    "tokens": (sitemap.TOKENS,),
    "embedding": (sitemap.TOKENS,),
    "segments": (sitemap.TOKENS,),
    "positions": (sitemap.POSITIONS,),
    "norm": _LAYER,
    "attention": (sitemap.QKV, sitemap.HEADS),
    "cross": (sitemap.QKV, sitemap.CROSS),
    "mask": (sitemap.QKV, sitemap.MASKS),
    "rotation": (sitemap.QKV, sitemap.POSITIONS),
    "alibi": (sitemap.HEADS, sitemap.POSITIONS),
    "relative": (sitemap.HEADS, sitemap.POSITIONS),
    "feedforward": _LAYER,
    "add": _LAYER,
    "add_norm": _LAYER,
    "transform": _LAYER,
    "unembedding": (sitemap.LAYER,),
    "logit_bias": (sitemap.LAYER,),
    "softmax": (sitemap.QKV, sitemap.GENERATION),
}
"""Kind of box -> the lessons and pages that take it apart."""
PRESSED: dict[str, tuple[str, ...]] = {
    "": ("attention",),
    "embedding": ("embedding",),
    "positions": ("positions",),
    "norm": ("add_norm", "add", "norm"),
    "feedforward": ("feedforward",),
    "output": ("unembedding",),
}
"""Box of the picture ("": a head) -> the kind of box that it is; the first that the model has."""
_NAMES = {"tokens": "lane_alone", **{kind: kind for kind in ("embedding", "positions", "cross", "feedforward")}}
"""Kind of box -> what it is called in the picture; an attention of a stack by its mask."""
ASKED = {
    "tables": ("tokens", "embedding", "positions", "segments", "unembedding"),
    "attentions": ("attention", "cross"),
    "feedforwards": ("feedforward",),
    "norms": ("norm", "add_norm"),
}

_FORMULAS = {
    "embedding": r"x_i = E_{t_i}",
    "segments": r"x_i \leftarrow x_i + S_{s_i}",
    "positions": r"x_i \leftarrow x_i + P_i",
    "mask": r"M_{ij} = -\infty \ \text{if}\ j > i, \ \text{else}\ 0",
    "rotation": r"q_i \leftarrow R_i\, q_i,\quad k_j \leftarrow R_j\, k_j",
    "alibi": r"\text{scores}_{ij} \leftarrow \text{scores}_{ij} - m_h\,|i - j|",
    "relative": r"\text{scores}_{ij} \leftarrow \text{scores}_{ij} + b_{h,\,\text{bucket}(j - i)}",
    "add": r"x \leftarrow x + f(\operatorname{norm}(x))",
    "add_norm": r"x \leftarrow \operatorname{norm}(x + f(x))",
    "unembedding": r"\text{logits} = x\, W_U",
    "logit_bias": r"\text{logits} \leftarrow \text{logits} + b",
    "softmax": r"p_j = e^{\,\text{logit}_j} \big/ \textstyle\sum_m e^{\,\text{logit}_m}",
}


def lengths(subject: Subject) -> tuple[int, int]:
    """Tokens of the stack that reads the text, and of the decoder that writes (0 where there is none beside it)."""
    tokens = subject.trace.tokens
    return len(subject.tokens), len(tokens["decoder"]) if "encoder" in tokens and "decoder" in tokens else 0


@cached
def boxes(model: ModelRef, n: int, target: int) -> tuple[Box, ...]:
    """The drawing's boxes, see `analysis.costs.model_boxes`; no prediction where the files hold no head for it."""
    found = model_boxes.architecture(model_cache.checkpoint(model).model, n, target)
    return found if model_cache.predicts(model) else tuple(box for box in found if box.section != "prediction")


@lab.draws
def draw_model_drawing(subject: Subject) -> None:
    with st.container(horizontal=True, vertical_alignment="top"):  # one line: the whole drawing is to be seen below it
        _switch()
        lesson.ask(share(subject), folded=True)  # first: the boxes below give it away
    press = picture.draw_whole_model(subject, key=_DRAWING, reports=True)
    picture.draw_away(subject, saved_page.html, key=_DRAWING)
    map_words.say_pronoun(subject)
    config, (n, target) = subject.config, lengths(subject)
    found = {box.key: box for box in boxes(subject.model, n, target)}
    default = next(box.key for box in found.values() if box.kind == "attention")
    if press is not None and (pressed := _pressed(press, [*found.values()])) is not None:
        lesson.change("map.box", pressed, default)
    left, right = st.columns([3, 2], gap="large")
    total = sum(box.parameters for box in found.values())
    with left:
        names = {key: _named(box, config, several=bool(target)) for key, box in found.items()}
        now = lab.box("box", names, default)
        columns = lab.columns("box", "into", "out", "parameters")
        rows = [
            Row(
                names[key],
                ", ".join(map(shape, box.inputs)),
                shape(box.output),
                _count(box),
                kind="marked" if key == now else "",
            )
            for key, box in found.items()
        ]
        st.html(table.style() + table.to_html(columns, rows))
        form = "both" if target else "one"
        lab.note("all", form=form, tokens=counts.tokens(n), written=target, total=total)
        if not any(box.section == "prediction" for box in found.values()):
            lab.note("headless")
    with right:
        _detail(subject, found[now], total)


def _pressed(press: Press, found: Sequence[Box]) -> str | None:
    """The key of the box that was pressed in the picture; None where the model has none of its kind."""
    kinds = ("cross",) if press.kind == "cross" and not press.box else PRESSED.get(press.box, ())
    stack = "prediction" if press.box == "output" else "encoder" if press.kind == "encoder" else "decoder"
    keys = [box.key for kind in kinds for box in found if box.kind == kind and box.section == stack]
    return keys[0] if keys else None


def _named(box: Box, config: ModelConfig, *, several: bool) -> str:
    """A box by its name and, where there are two stacks, the stack that it is in."""
    if not several or box.section == "prediction":
        return title(box, config)
    return lab.text("named", stack=lab.text(f"stacks.{box.section}"), box=title(box, config))


@lab.asks("share")
def share(subject: Subject) -> lesson.Choice:
    found = boxes(subject.model, *lengths(subject))
    sizes = {name: sum(box.parameters for box in found if box.kind in kinds) for name, kinds in ASKED.items()}
    names = lab.texts("asks.share.choices", list(ASKED))
    listed = _("; ").join(f"{names[name]}: {size:,}" for name, size in sizes.items())
    total = sum(box.parameters for box in found)
    return lab.choice(
        "share", list(sizes), max(sizes, key=sizes.__getitem__), subject.model, total=total, counts=listed
    )


def _switch() -> None:
    """The three architectures, each as the first model on the shelf that has it."""
    first: dict[str, ModelRef] = {}
    for model in model_list.that_open():
        first.setdefault(model_cache.shape(model).architecture, model)
    now = state.view().model
    own = model_cache.options(now).architecture
    first[own] = now
    state.show(_SWITCH, own)
    names = {
        name: f"{lab.text(f'switch.{name}')} · {sources.title(first[name])}" for name in ARCHITECTURES if name in first
    }
    st.segmented_control(
        lab.text("switch.label"),
        names,
        required=True,
        label_visibility="collapsed",
        key=_SWITCH,
        format_func=names.__getitem__,
        on_change=_take,
        args=(first,),
    )


def _take(first: dict[str, ModelRef]) -> None:
    if (chosen := st.session_state[_SWITCH]) in first:
        state.update(model=first[chosen], edits="")


# --- what the boxes say -----------------------------------------------------------------------------------------------


def title(box: Box, config: ModelConfig) -> str:
    attention = "self" if box.section == "encoder" else "masked_self"
    if name := attention if box.kind == "attention" else _NAMES.get(box.kind):
        return words(ENGLISH)[name]
    norm = "rms" if config.norm == "rms_norm" else "layer"
    return lab.text(f"boxes.{box.kind}.title", form=box.section if box.kind == "mask" else norm)


def about(box: Box, config: ModelConfig) -> str:
    """What the box does, in a sentence or two; Markdown, nothing that was typed in it."""
    kind, decoder, window = box.kind, box.section == "decoder", config.sliding_window or 1
    forms = {  # which of the wordings of a kind
        "tokens": "written" if decoder and config.architecture == "encoder-decoder" else "read",
        "positions": "learned" if config.positions == "learned" else "waves",
        "mask": _mask(config),
    }
    values = {
        "d": config.d_model,
        "d_ff": config.d_ff,
        "d_head": config.d_head,
        "vocab": config.input_vocab_size if box.section == "encoder" else config.vocab_size,
        "segments": config.n_segments,
        "whom": lab.text(f"whom.{'before' if decoder else 'all'}"),
        "heads": counts.heads(config.n_heads),
        "window": f"{window:,}",
        "reach": f"{window - 1:,}",
        "windowed": ranges(sorted(config.windowed_layers)),
    }
    said = [lab.text(f"boxes.{kind}.about", form=forms.get(kind), **values)]
    if kind == "embedding" and config.scaled_embedding:
        said.append(lab.text("by_root"))
    return " ".join([*said, *map(translate, config.sentences() if kind == "attention" else ())])


def _mask(config: ModelConfig) -> str:
    """Which mask the self-attention has, in some or all of its layers."""
    if config.sliding_window is None:
        return "causal"
    if config.architecture == "encoder-only":
        return "around"
    return "window" if len(config.windowed_layers) == config.n_decoder_layers else "windows"


def leads_to(box: Box, config: ModelConfig) -> tuple[Entry, ...]:
    if box.kind == "softmax" and config.architecture == "encoder-only":
        return sitemap.QKV, sitemap.BLANKS
    return BOXES[box.kind]


def shape(dims: Sequence[int]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _count(box: Box) -> str:
    """The number of parameters of a box, as the box shows it."""
    if box.shared or not box.copy:
        return lab.text("shared") if box.shared else ""
    return f"{box.copies} × {box.copy:,}" if box.copies > 1 else f"{box.copy:,}"


# --- the chosen box ---------------------------------------------------------------------------------------------------


def _detail(subject: Subject, box: Box, total: int) -> None:
    config = subject.config
    st.subheader(title(box, config))
    st.markdown(about(box, config))
    if box.kind == "tokens":
        st.text("  ".join(labels.numbered(subject.trace.tokens[box.section])))
    into, out = lab.text("and").join(map(shape, box.inputs)), shape(box.output)
    st.markdown(
        lab.text("flow", form="inside" if into and box.inside else "both" if into else "out", into=into, out=out)
    )
    if written := formula(box, config):
        st.latex(written)
    st.markdown(_parameters(box, total))
    if box.tensors:
        named = [f"`{name} {shape(dims)}`" for name, dims in box.tensors]
        st.markdown(" · ".join(named))
        sizes = [tuple(dims) for __, dims in box.tensors]
        lesson.formula(code=f"sum(math.prod(shape) for shape in {sizes})")
    with st.container(horizontal=True):
        for entry in leads_to(box, config):
            st.page_link(entry.file, label=lab.text("apart", page=translate(entry.title)))


def _parameters(box: Box, total: int) -> str:
    """How many numbers of the box were learned; Markdown."""
    if box.shared or not box.copy:
        return lab.text("learned", form="shared" if box.shared else "none")
    form = "one" if box.copies == 1 else "many"
    sizes = {"copies": box.copies, "copy": box.copy, "count": box.parameters, "total": total}
    return lab.text("learned", form=form, share=f"{box.parameters / total:.1%}", **sizes)


def _feedforward(config: ModelConfig) -> str:
    """The formula of a feed-forward network as LaTeX, with the name of its activation and its biases."""
    bends = rf"\operatorname{{{ACTIVATION_NAMES[config.activation]}}}"
    into, gate, out = (rf" + b_\text{{{name}}}" if config.bias else "" for name in ("in", "gate", "out"))
    if config.feedforward == "gated":
        spread = rf"(x W_\text{{in}}{into})" if config.bias else r"x W_\text{in}"
        return rf"({bends}(x W_\text{{gate}}{gate}) \odot {spread})\, W_\text{{out}}{out}"
    return rf"{bends}(x W_\text{{in}}{into})\, W_\text{{out}}{out}"


def formula(box: Box, config: ModelConfig) -> str:
    """The formula of a box as LaTeX; "" where it has none."""
    if box.kind == "embedding" and config.scaled_embedding:
        return r"x_i = \sqrt{d_\text{model}}\; E_{t_i}"
    if box.kind == "add":
        inner = r"\operatorname{norm}(x)" if config.norm_order == "pre" else "x"
        return rf"x \leftarrow x + f({inner})"
    if box.kind == "unembedding" and config.logit_scale != 1:
        return rf"\text{{logits}} = {config.logit_scale:.4g}\; x\, W_U"
    if box.kind == "mask" and box.section == "encoder":
        return rf"M_{{ij}} = -\infty \ \text{{if}}\ |i - j| \ge {config.sliding_window}, \ \text{{else}}\ 0"
    if box.kind == "mask" and (window := config.sliding_window) is not None:
        return rf"M_{{ij}} = -\infty \ \text{{if}}\ j > i \ \text{{or}}\ j \le i - {window}, \ \text{{else}}\ 0"
    if box.kind == "attention":
        mask = " + M" if box.section == "decoder" or config.sliding_window is not None else ""
        scores = config.scores_formula(r"QK^{\top}")
        return rf"\operatorname{{softmax}}\!\left({scores}{mask}\right) V"
    if box.kind == "cross":
        scores = config.scores_formula(r"Q_\text{dec} K_\text{enc}^{\top}")
        return rf"\operatorname{{softmax}}\!\left({scores}\right) V_\text{{enc}}"
    if box.kind == "norm":
        if config.norm == "rms_norm":
            return r"\frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}} \odot w"
        return r"\frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{var}(x) + \epsilon}} \odot w + b"
    if box.kind == "feedforward":
        return _feedforward(config)
    return _FORMULAS.get(box.kind, "")

"""One text through a model, and the measures of every head: layer by layer, so that only the maps of one are in memory."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.measures import TARGETS, layer_patterns, measure_layer, targets, visible_keys
from vizformer.analysis.corpus_heads.sums import Sums
from vizformer.analysis.heads.induction import induction_score, repeatable, repeated_tokens
from vizformer.analysis.heads.maps import Kind, kinds, records_of, site_name
from vizformer.analysis.masks import rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import VizformerError
from vizformer.messages import Message
from vizformer.model import Trace
from vizformer.text import Token

MOST_TOKENS = 256  # of a text that are read: maps are the square of it
PERIOD, SEQUENCES = 25, 8  # of the random tokens that come twice
_STACKS: dict[Kind, tuple[str, str]] = {
    "encoder": ("encoder", "encoder"),
    "decoder": ("decoder", "decoder"),
    "cross": ("decoder", "encoder"),
}


@dataclass(frozen=True)
class HeadOnPassage:
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    pattern: Float[ndarray, "n_q n_k"]
    reasons: UInt8[ndarray, "n_q n_k"]
    # the visible cells of the target; of what is no target, the strongest key of each query
    marked: Bool[ndarray, "n_q n_k"]
    # the head's "Q", "K" and "V" of each token as the scores read them, after norms and rotary positions, and "O", the
    # sum of the values that it makes, z = pattern V
    vectors: Mapping[str, Float[ndarray, "n d"]]


def stacks_of(kind: Kind) -> tuple[str, str]:
    """The stacks whose tokens are the queries and the keys."""
    return _STACKS[kind]


def heads_of(checkpoint: AnyCheckpoint) -> dict[Kind, tuple[int, int]]:
    """The kinds of attention of a model, each with its layers and most heads of one, in the order of the data flow."""
    of: dict[Kind, tuple[int, ...]] = {kind: checkpoint.shape.heads_of(kind) for kind in _STACKS}
    return {kind: (len(heads), max(heads)) for kind, heads in of.items() if heads}


def measure_text(checkpoint: AnyCheckpoint, passage: Passage, number: int, sums: dict[Kind, Sums]) -> bool:
    """Adds what text number `number` says to `sums`; False where the model cannot read it."""
    try:
        read = read_tokens(checkpoint, passage)
    except VizformerError:
        return False
    trace = run(checkpoint, read)
    same = checkpoint.source_tokenizer is None
    for kind in kinds(trace):
        queries, keys = (read[stack] for stack in stacks_of(kind))
        asking, asked = (torch.tensor([token.id for token in row]) for row in (queries, keys))
        wanted = targets(
            asking,
            asked,
            torch.tensor([is_delimiter(token) for token in keys]),
            cross=kind == "cross",
            same=same or kind != "cross",
        )
        sinks = torch.tensor([token.special or (j == 0 and kind != "cross") for j, token in enumerate(keys)])
        beside, values, looks, keeps = [], [], [], number < sums[kind].keeps
        for layer, record in enumerate(records_of(trace, kind)):
            patterns, visible = layer_patterns(record).cpu(), visible_keys(record).cpu()
            values.append((found := measure_layer(patterns, visible, wanted)).values)
            sums[kind].add_layer(number, layer, found)
            if keeps:
                looks.append(sums[kind].looks(layer, patterns, visible, sinks, asking, asked))
            sums[kind].add_corner(layer, patterns, visible)
            beside.append(sums[kind].beside_sinks(layer, patterns, visible, sinks))
        sums[kind].add_likeness(beside)
        if keeps:
            sums[kind].add_values(number, values, looks)
    return True


def read_tokens(checkpoint: AnyCheckpoint, passage: Passage) -> dict[str, tuple[Token, ...]]:
    """The first MOST_TOKENS tokens of a passage for each stack; the target is generated where none is given.

    Raises:
        VizformerError: the model cannot read it.
    """
    tokens = checkpoint.tokenizer_of("encoder").encode(passage.text)[: _most(checkpoint)]
    if not tokens:
        raise VizformerError(Message("no token"))
    if checkpoint.shape.architecture != "encoder-decoder":
        return {checkpoint.shape.last_stack: tokens}
    if passage.target:
        target = checkpoint.encode_target(passage.target)[: _most(checkpoint)]
    else:
        target = checkpoint.trace(ids=[token.id for token in tokens]).tokens["decoder"]
    return {"encoder": tokens, "decoder": target}


def run(checkpoint: AnyCheckpoint, read: dict[str, tuple[Token, ...]]) -> Trace:
    """One forward over these tokens; our own models compute no logits, which no measure uses."""
    if not checkpoint.is_own:
        return rerun(checkpoint, read, None)
    model, trace, memory = checkpoint.model, Trace(), None
    with torch.inference_mode():
        if "encoder" in read:
            tokens = read["encoder"]
            memory = model.encode(checkpoint.tensor(tokens), segments=checkpoint.segments(tokens), trace=trace)
        if "decoder" in read:
            tokens = read["decoder"]
            segments = checkpoint.segments(tokens) if memory is None else None
            model.decode(checkpoint.tensor(tokens), memory, segments=segments, trace=trace)
    return trace


def is_delimiter(token: Token) -> bool:
    """Whether a token is a mark of the tokenizer, or nothing but punctuation."""
    text = token.text.strip()
    return token.special or (bool(text) and all(unicodedata.category(char).startswith("P") for char in text))


def repeated_induction(checkpoint: AnyCheckpoint) -> dict[Kind, Tensor]:
    """The induction score on random tokens that come twice, [sequences, n_layers, n_heads] of each kind within a text.

    Nothing but the repetition tells there what comes next (Olsson et al. 2022).  Empty where the model is too short.
    """
    found: dict[Kind, list[Tensor]] = {}
    rows = {stack: _repeated(checkpoint, stack) for stack in ("encoder", "decoder")}
    for number in range(SEQUENCES):
        read = {
            stack: checkpoint.tokenizer_of(stack).tokens(sequences[number])  # type: ignore[arg-type]
            for stack, (__, sequences) in rows.items()
            if sequences
        }
        if not read or len(read) < len([stack for stack in rows if _has(checkpoint, stack)]):
            return {}
        trace = run(checkpoint, read)
        for kind in kinds(trace):
            if kind == "cross":
                continue
            start = rows[kind][0]
            period = (len(read[kind]) - start) // 2
            scores = [
                induction_score(layer_patterns(record).cpu().numpy(), period, start)
                for record in records_of(trace, kind)
            ]
            found.setdefault(kind, []).append(torch.stack([torch.from_numpy(row) for row in scores]))
    return {kind: torch.stack(scores) for kind, scores in found.items()}


def _repeated(checkpoint: AnyCheckpoint, stack: str) -> tuple[int, list[list[int]]]:
    """The number of tokens before the first period, and the repeated sequences; none without this stack."""
    shape = checkpoint.shape
    if not _has(checkpoint, stack):
        return 0, []
    both = shape.architecture == "encoder-decoder"
    if stack == "decoder" and both:
        first: Sequence[int] = shape.start_ids
    else:
        begun = checkpoint.model.config.bos_id if checkpoint.is_own else None
        first = [] if begun is None or both else [begun]
    tokenizer = checkpoint.tokenizer_of("encoder" if stack == "encoder" else "decoder")
    ids = shape.input_vocab_size if stack == "encoder" else shape.vocab_size
    candidates, period = repeatable(ids, tokenizer, shape.max_positions - len(first), PERIOD)
    if period < 2:
        return 0, []
    rows = repeated_tokens(candidates, sequences=SEQUENCES, period=period)
    return len(first), [[*first, *row] for row in rows.tolist()]


def _has(checkpoint: AnyCheckpoint, stack: str) -> bool:
    return bool(checkpoint.shape.layers_of(stack))


def _most(checkpoint: AnyCheckpoint) -> int:
    return min(MOST_TOKENS, checkpoint.shape.max_positions)


# One head on one passage of the corpus, with the cells of a target marked.
def head_on_passage(
    checkpoint: AnyCheckpoint, passage: Passage, kind: Kind, layer: int, head: int, measure: str
) -> HeadOnPassage:
    """The map of a head on the tokens that the report read of a passage: the first ones of a long passage."""
    read = read_tokens(checkpoint, passage)
    record = run(checkpoint, read)[site_name(kind, layer)]
    queries, keys = (read[stack] for stack in stacks_of(kind))
    pattern, visible = layer_patterns(record)[head].cpu(), visible_keys(record).cpu()
    if measure in TARGETS:
        cross = kind == "cross"
        found = targets(
            torch.tensor([token.id for token in queries]),
            torch.tensor([token.id for token in keys]),
            torch.tensor([is_delimiter(token) for token in keys]),
            cross=cross,
            same=not cross or checkpoint.source_tokenizer is None,
        )
        marked = (found.keys[TARGETS.index(measure)] & visible).numpy()
    else:
        marked = np.eye(len(keys), dtype=bool)[pattern.argmax(-1).numpy()]
    kv = record.kv_head(head)
    parts = {"Q": record.q[head], "K": record.k[kv], "V": record.v[kv], "O": record.z(head)}
    vectors = {name: rows.float().cpu().numpy() for name, rows in parts.items()}
    return HeadOnPassage(queries, keys, pattern.numpy(), record.reason(head).cpu().numpy(), marked, vectors)

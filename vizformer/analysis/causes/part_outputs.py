"""What heads and sublayers put out for texts, and the means of it, which can stand in the place of a part.

    mean of a head       m = (1 / N) sum over all N rows of the texts of z_i        z = pattern v, before W_O    [d_head]
    mean of a sublayer   m = (1 / N) sum over all N rows of the texts of y_i        what it adds to the stream  [d_model]

y is taken after a norm of what was found and a factor of it, where the model has such.

Zero is a number that the rest of the model may never have seen in that place, and a mean is one that no text gives; what a
part puts out for another text, which is drawn, is one that it knows, and says nothing of this one.

Source: Wang et al. 2023, "Interpretability in the Wild", section 2 (mean ablation); Chan et al. 2022, "Causal Scrubbing: a
method for rigorously testing interpretability hypotheses" (resampling ablation).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from vizformer.analysis.causes.ablation import Means, Part, parts_of
from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.masks import rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError, VizformerError
from vizformer.model import Edit, Trace


@dataclass(frozen=True)
class Listener(Edit):
    """An edit that keeps what some sublayers put out, once the patches are set, for all items of a batch."""

    names: frozenset[str] = frozenset()  # "decoder.2.cross", "decoder.2.feedforward"
    heard: dict[str, Tensor] = field(default_factory=dict)  # name -> [b, n, d_model]

    def patched(self, name: str, x: Tensor) -> Tensor:
        x = super().patched(name, x)
        if name in self.names:
            self.heard[name] = x.detach()
        return x


Outputs = Mapping[Part, Tensor]
"""The outputs of parts: z of a head [n, d_head], or what a sublayer adds to the residual stream [n, d_model]."""


@torch.inference_mode()
def outputs_of(checkpoint: AnyCheckpoint, trace: Trace) -> Outputs:
    """The outputs of every head and every sublayer for the tokens of a trace, without its numbers set by hand."""
    if trace.is_recorded:
        plain = rerun(checkpoint, trace.tokens, None)
        return {part: plain[part.sublayer].z(part.head) for part in parts_of(plain) if part.head is not None}
    listener = Listener(names=frozenset(part.sublayer for part in parts_of(trace)))
    plain = rerun(checkpoint, trace.tokens, listener)
    return {
        part: listener.heard[part.sublayer][0] if part.head is None else plain[part.sublayer].z(part.head)
        for part in parts_of(plain)
    }


@torch.inference_mode()
def mean_outputs(checkpoint: AnyCheckpoint, traces: Iterable[Trace]) -> Means:
    """The mean of every head and of every sublayer over all rows of some texts; see the module.

    Raises:
        TraceError: there is no text.
    """
    sums, rows = dict[Part, Tensor](), dict[Part, int]()
    for trace in traces:
        for part, output in outputs_of(checkpoint, trace).items():
            total = output.double().sum(0)
            sums[part] = total + sums[part] if part in sums else total
            rows[part] = rows.get(part, 0) + len(output)
    if not sums:
        raise TraceError("There is no other text from which outputs could be taken.")
    return {part: (total / rows[part]).float() for part, total in sums.items()}


def draw_outputs(trace: Trace, others: Sequence[Outputs], draws: int, seed: int = 0) -> tuple[Outputs, ...]:
    """Outputs in the shape of a trace, one for each draw, each of all parts for one of the other texts.

    A position takes the row of its own number there; where the other text has ended, a row of it that is drawn as well.

    Args:
        others: of `outputs_of`, text by text.
        seed: the same seed draws the same.

    Raises:
        TraceError: there is no other text.
    """
    if not others:
        raise TraceError("There is no other text from which outputs could be taken.")
    rng, found = np.random.default_rng(seed), list[Outputs]()
    for _ in range(draws):
        other = others[int(rng.integers(len(others)))]
        rows = {stack: _rows(len(tokens), _length(other, stack), rng) for stack, tokens in trace.tokens.items()}
        found.append({part: z[rows[part.sublayer.partition(".")[0]]] for part, z in other.items()})
    return tuple(found)


def _length(outputs: Outputs, stack: str) -> int:
    return next(len(z) for part, z in outputs.items() if part.sublayer.startswith(stack))


def _rows(n: int, there: int, rng: np.random.Generator) -> Tensor:
    """The row of the other text for each of n positions: the same position where it exists, else a random one."""
    drawn = rng.integers(there, size=n)
    return torch.from_numpy(np.where(np.arange(n) < there, np.arange(n), drawn))


# Runs over other texts, from which means and outputs are taken that stand in the place of a part.
def read_other_texts(checkpoint: AnyCheckpoint, passages: Iterable[Passage], count: int) -> list[Trace]:
    """Traces of the first `count` passages that the model can read.

    A text that is longer than the model's positions is halved, with its target, until it fits.
    """
    traces = list[Trace]()
    for passage in passages:
        if len(traces) == count:
            break
        text, target = passage.text, passage.target
        while text:
            try:
                traces.append(checkpoint.trace(text, target=target or None))
            except VizformerError:
                text, target = text[: len(text) // 2].strip(), target[: len(target) // 2].strip()
            else:
                break
    return traces


def unknown_share(checkpoint: AnyCheckpoint, passages: Iterable[Passage]) -> float:
    """The share of unknown tokens in some texts, the tokenizer's other special tokens left out; 0 without tokens."""
    unknown = total = 0
    for passage in passages:
        with suppress(VizformerError):
            read = [(checkpoint.tokenizer_of("encoder"), checkpoint.tokenizer_of("encoder").encode(passage.text))]
            if passage.target and checkpoint.shape.architecture == "encoder-decoder":
                read.append((checkpoint.tokenizer_of("decoder"), checkpoint.encode_target(passage.target)))
            for tokenizer, tokens in read:
                none = sum(token.id == tokenizer.unknown_id for token in tokens)
                unknown += none
                total += none + sum(not token.special and token.id != tokenizer.unknown_id for token in tokens)
    return unknown / max(total, 1)

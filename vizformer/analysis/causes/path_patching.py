"""Path patching: does what differs go from this head to that one?

Activation patching (`patching`) gives a head's output to everything that comes after it.  Path patching
gives it to one receiver alone: the query, the key or the value of another head, or the logits.  One of the two prompts is
held, and the other one sends:

    1. A run over the held prompt, in which the output z of every head is held at its value there, but for the senders',
       which are those of the other prompt.  It says what the receiver is when only the senders have changed.
    2. A run over the held prompt with exactly this in the receiver's place; what comes after it is computed anew.

The direct path from sender to receiver leads along the residual stream and through the norms and the feed-forward
networks on the way, which are computed anew in run 1.  Where the receiver is the logits, run 1 is the answer.  With LD as in
`vizformer.analysis.causes.prompt_pairs`, a path is judged by

    share = (LD(held) - LD(path patched)) / (LD(held) - LD(other))

which is 0 where nothing of what differs takes this path, and 1 where all of it does.  With the clean prompt held it is the
share of the difference that is lost, as in the paper; with the corrupted one held it is the share that comes back.

Source: Wang et al. 2022, "Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small",
section 3.1 and appendix B; Goldowsky-Dill et al. 2023, "Localizing Model Behavior with Path Patching".
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.batches import Heard, Start, entering, judged, logits_of_runs, resumed, start_of
from vizformer.analysis.causes.part_outputs import Listener
from vizformer.analysis.causes.prompt_pairs import PromptPair
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import Kind, as_table, records_of
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch, Trace

Held = Literal["clean", "corrupted"]
Input = Literal["q", "k", "v"]


@dataclass(frozen=True)
class Receiver:
    """The query, the key or the value of a head.

    Where query heads share a key/value head, their key is one tensor: then "k" and "v" reach all that share it. So they do
    in the later layers that read the keys and values of this one (`kv_layers`).

    Attributes:
        site: of the attention, "decoder.2.cross".
    """

    site: str
    head: int
    input: Input


@dataclass(frozen=True)
class PathPatched:
    """What goes from each head of one kind of attention into the receivers.

    Attributes:
        kind: of attention, of the senders.
        receivers: empty where it is the logits.
        held: the prompt that is held.
        names: of the rows of the table: sites.
        share: see the module; NaN where a layer has fewer heads than another.
    """

    kind: Kind
    receivers: tuple[Receiver, ...]
    held: Held
    names: tuple[str, ...]
    share: Float[ndarray, "n_layers n_heads"]

    def to_frame(self) -> Any:
        """A DataFrame: a row for each sender, the largest |share| first."""
        cells = sorted(np.argwhere(np.isfinite(self.share)).tolist(), key=lambda at: -abs(self.share[tuple(at)]))
        return frame({"place": self.names[at], "head": h, "share": self.share[at, h]} for at, h in cells)


def path_patch_runs(
    checkpoint: Checkpoint,
    pair: PromptPair,
    kind: Kind,
    receivers: Collection[Receiver] = (),
    *,
    held: Held = "clean",
    heard: Heard | None = None,
) -> PathPatched:
    """Every head of one kind of attention as the only sender, one after the other.

    Args:
        receivers: which take in what they were sent together; the logits where there are none.

    Raises:
        TraceError: the model has no such attention, or no such receiver.
    """
    names = tuple(record.site for record in records_of(pair.clean, kind))
    cells = [(layer, head) for layer, name in enumerate(names) for head in range(pair.clean[name].n_heads)]
    senders = [[Part(names[layer], head)] for layer, head in cells]
    share = path_patches(checkpoint, pair, senders, receivers, held=held, heard=heard)
    return PathPatched(kind, tuple(receivers), held, names, as_table(cells, share))


@torch.inference_mode()
def path_patches(
    checkpoint: Checkpoint,
    pair: PromptPair,
    senders: Sequence[Collection[Part]],
    receivers: Collection[Receiver] = (),
    *,
    held: Held = "clean",
    embeddings: bool = False,
    heard: Heard | None = None,
) -> Float[ndarray, " senders"]:
    """The share of each group of senders; see the module.

    Args:
        senders: groups of heads that send together; a part without a head is all heads of its attention.
        embeddings: whether the embeddings of the tokens are sent as well; what layers read of the tokens again (per-layer
            inputs) stays that of the held prompt.
        heard: is told how many runs of the model are done, of how many.

    Raises:
        TraceError: a sender that is no head of an attention, or a receiver that is not there.
    """
    base, moved, each = _held_run(pair, held), pair.moved if held == "clean" else -pair.moved, 2 if receivers else 1
    for one in receivers:
        _require(pair, one)
    if embeddings and not checkpoint.model.config.has_plain_stream:
        raise TraceError(
            "The embeddings of this model enter several residual streams, and are not sent along. Leave them out."
        )
    starts = [_start(checkpoint, base, group, embeddings) for group in senders]
    if receivers:
        starts = [start_of(checkpoint, [one.site for one in receivers])] * len(senders)
    batches = logits_of_runs(
        checkpoint,
        base,
        starts,
        lambda there, __: _edit(checkpoint, pair, [senders[at] for at in there], receivers, held, embeddings),
        pair.row,
        None if heard is None else lambda done, of: heard(each * done, each * of),  # runs of the model
    )
    before = pair.difference(base.logits)
    share = judged(batches, len(senders), lambda logits: (before - pair.difference_at_row(logits)).cpu().numpy())
    return share / moved


def _start(checkpoint: Checkpoint, base: Trace, senders: Collection[Part], embeddings: bool) -> Start:
    """Where run 1 departs from the held run."""
    first = [f"{stack}.0.pre" for stack in base.tokens] if embeddings else []
    return start_of(checkpoint, [*first, *(base[part.sublayer].site for part in senders)])


@torch.inference_mode()
def path_edit(
    checkpoint: Checkpoint,
    pair: PromptPair,
    senders: Collection[Part],
    receivers: Collection[Receiver] = (),
    *,
    held: Held = "clean",
) -> Edit:
    """What a forward over the held prompt is given to be the patched one, for a forward of its own.

    Raises:
        TraceError: as `path_patches`.
    """
    for one in receivers:
        _require(pair, one)
    return _edit(checkpoint, pair, [senders], receivers, held, embeddings=False)


def _held_run(pair: PromptPair, held: Held) -> Trace:
    return pair.clean if held == "clean" else pair.corrupted


def _edit(
    checkpoint: Checkpoint,
    pair: PromptPair,
    group: Sequence[Collection[Part]],
    receivers: Collection[Receiver],
    held: Held,
    embeddings: bool,
) -> Edit:
    """The last run of a batch with one group of senders in each item: run 1 for the logits, else run 2."""
    sent = _sent(pair, group, held, embeddings)
    if not receivers:
        return sent
    watch = Listener(patches=sent.patches, names=frozenset(f"{one.site}.{one.input}" for one in receivers))
    base = _held_run(pair, held)
    start = min(
        start_of(checkpoint, [one.site for one in receivers]),
        *(_start(checkpoint, base, senders, embeddings) for senders in group),
    )
    resumed(checkpoint, base, start, entering(checkpoint, base, start, len(group)), watch)
    taken = []
    for one in receivers:
        head = one.head if one.input == "q" else pair.clean[one.site].kv_head(one.head)
        name = f"{one.site}.{one.input}"
        taken.append(Patch(name, (head,), watch.heard[name][:, head]))
    return Edit(patches=tuple(taken))


def _sent(pair: PromptPair, group: Sequence[Collection[Part]], held: Held, embeddings: bool) -> Edit:
    """Run 1: all heads held but the senders, one tensor [b, n_heads, n, d_head] for every attention."""
    base, other = (pair.clean, pair.corrupted) if held == "clean" else (pair.corrupted, pair.clean)
    patches = []
    if embeddings:
        patches = [Patch(f"{stack}.0.pre", (), other.residual(f"{stack}.0.pre")) for stack in base.tokens]
    outputs = {site: _outputs(base, site).expand(len(group), -1, -1, -1).clone() for site in base.sites}
    for item, senders in enumerate(group):
        for part in senders:
            heads = range(base[part.sublayer].n_heads) if part.head is None else [part.head]
            for head in heads:
                outputs[part.sublayer][item, head] = other[part.sublayer].z(head)
    return Edit(patches=(*patches, *(Patch(f"{site}.z", (), z) for site, z in outputs.items())))


def _outputs(trace: Trace, site: str) -> Float[Tensor, "n_heads n d_head"]:
    record = trace[site]
    return torch.stack([record.z(head) for head in range(record.n_heads)])


def _require(pair: PromptPair, receiver: Receiver) -> None:
    record = pair.clean[receiver.site]
    if receiver.input not in ("q", "k", "v") or not 0 <= receiver.head < record.n_heads:
        raise TraceError(
            "There is no head {head} at {site}: choose 0 to {last}.",
            head=receiver.head,
            site=receiver.site,
            last=record.n_heads - 1,
        )

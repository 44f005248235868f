"""Cached computations of the paths between heads."""

from dataclasses import dataclass
from typing import Literal

from vizformer.analysis import Kind, PathPatched, Receiver, path_edit, path_patch_runs
from vizformer.analysis.causes.ablation import Part, parts_of
from vizformer.analysis.heads.maps import n_layers
from vizformer.analysis.masks.runs import rerun
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import patched_cells
from vizformer.web.tools.what_if.patched_cells import Said
from vizformer.web.tools.what_if.prompts import Prompts
from vizformer.web.words import ablated_parts

Into = Literal["logits", "q", "k", "v"]
Held = Literal["clean", "corrupted"]


@dataclass(frozen=True)
class Path:
    kind: Kind  # of attention, of the heads that send
    into: Into  # what receives
    written: str  # the head that receives, as a link has it; empty where the logits do
    held: Held  # the prompt that is held

    @property
    def head(self) -> Part | None:
        found = ablated_parts.parts(self.written)
        return found[0] if found else None

    @property
    def receivers(self) -> tuple[Receiver, ...]:
        head = self.head
        if head is None or head.head is None or self.into == "logits":
            return ()
        return (Receiver(head.sublayer, head.head, self.into),)


@cached
def measured(prompts: Prompts, asked: Path) -> PathPatched:
    return path_patch_runs(
        prompts.clean.checkpoint, prompts.pair, asked.kind, asked.receivers, held=asked.held, heard=HEARD.get()
    )


@cached
def said(prompts: Prompts, asked: Path, sender: Part) -> tuple[Said, Said, Said]:
    """The held run, the same with the path patched, and the other run."""
    checkpoint, pair = prompts.clean.checkpoint, prompts.pair
    edit = path_edit(checkpoint, pair, [sender], asked.receivers, held=asked.held)
    held, other = (pair.clean, pair.corrupted) if asked.held == "clean" else (pair.corrupted, pair.clean)
    patched = rerun(checkpoint, held.tokens, edit)
    first, second, third = (patched_cells.say(prompts, one.logits) for one in (held, patched, other))
    return first, second, third


def heads(subject: Subject) -> tuple[Part, ...]:
    """All heads of the model, of which each can receive."""
    return tuple(part for part in parts_of(subject.trace) if part.head is not None)


def senders(subject: Subject, asked: Path) -> int:
    """How many heads send, one after the other."""
    return n_layers(subject.trace, asked.kind) * subject.config.most_heads

"""Path patching: what goes from every head to one receiver alone, as a picture, one path in numbers, and in Python."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import PathPatched, kinds
from vizformer.analysis.causes.ablation import Part
from vizformer.web.link import state
from vizformer.web.tools.what_if import patched_paths
from vizformer.web.tools.what_if.one_cell import opening, three_runs
from vizformer.web.tools.what_if.patched_paths import Path
from vizformer.web.tools.what_if.prompts import Prompts
from vizformer.web.tools.what_if.share_map import CELL, chosen_cell, one_map, window
from vizformer.web.widgets import in_python, lesson, watched_work
from vizformer.web.widgets.choices import box, kind_of_attention, more, one_of
from vizformer.web.words import ablated_parts
from vizformer.web.words.ablated_parts import signed
from vizformer.web.words.i18n import _, show_note, show_text

TO, HEAD, STANDS = "whatif.to", "whatif.tohead", "whatif.held"


def draw_paths(prompts: Prompts, settings: DeltaGenerator) -> None:
    """The boxes, the map of the senders, the chosen path and the code."""
    with settings:
        asked = choose(prompts)
    found = measured(prompts, asked)
    sender = None
    if found is not None:
        names = (
            [_("L{layer}", layer=layer) for layer in range(found.share.shape[0])],
            [_("H{head}", head=head) for head in range(found.share.shape[1])],
        )
        key = f"paths.{asked.kind}.{asked.into}.{asked.head}.{asked.held}"
        first = window(found.share.shape)
        cell = chosen_cell(found.share, first, key)
        title = _("From each head to {receiver}: the share of the difference", receiver=receiver_name(asked))
        one_map(found.share, title, names, cell, first, f"what_if.measured.{key}")
        sender = found.names[cell[0]], cell[1]
        one_path(prompts, asked, found, cell)
    in_python.show(code(prompts, asked, sender))


def choose(prompts: Prompts) -> Path:
    """Who sends, who receives, and which prompt is held."""
    kind, head = kind_of_attention(kinds(prompts.clean.trace), _("Heads that send")), ""
    names = {"logits": _("the logits"), "q": _("a query"), "k": _("a key"), "v": _("a value")}
    into = one_of(_("What receives"), TO, names)
    if into != "logits":
        heads = {ablated_parts.write([part]): ablated_parts.name(part) for part in patched_paths.heads(prompts.clean)}
        head = box(_("of the head"), HEAD, heads, list(heads)[-1])
    held_names = {"clean": _("the clean prompt: what is lost"), "corrupted": _("the corrupted one: what comes back")}
    with more():
        held = one_of(_("What is held"), STANDS, held_names)
    return Path(kind, into, head, held)  # type: ignore[arg-type]  # (one of `names`, one of `held_names`)


def measured(prompts: Prompts, asked: Path) -> PathPatched | None:
    """The map; None until it is wanted, or where it takes too long."""
    senders = patched_paths.senders(prompts.clean, asked)
    runs = senders * (1 if asked.into == "logits" else 2)
    return watched_work.bounded(
        patched_paths.measured,
        (prompts, asked),
        cost=watched_work.cost(prompts.clean, runs),
        too_long=_(
            "Patching each of the {n} paths takes too long here: choose shorter prompts or a smaller model. In Python: "
            "vf.analysis.path_patch_runs.",
            n=f"{senders:,}",
        ),
        runs=runs,
        begin=_("Patch one path after the other"),
        key="what_if.path",
    )


def receiver_name(asked: Path) -> str:
    return _("the logits") if asked.head is None else ablated_parts.operand(asked.head, asked.into)


def one_path(prompts: Prompts, asked: Path, found: PathPatched, cell: tuple[int, int]) -> None:
    """The three runs of the chosen sender, and the way back to who sends to it."""
    sender = Part(found.names[cell[0]], cell[1])
    titles = (_("clean"), _("patched"), _("corrupted"))
    name = _("from {sender} to {receiver}", sender=ablated_parts.name(sender), receiver=receiver_name(asked))
    three_runs(
        prompts,
        patched_paths.said(prompts, asked, sender),
        titles if asked.held == "clean" else titles[::-1],
        _("The chosen path: {name}", name=name),
    )
    show_text("Share of the difference: {share}", share=signed(float(found.share[cell])))
    if np.nanmax(np.abs(found.share)) < 0.05:
        show_text("No head sends much of it there.")
    st.button(_("Which heads send to the key of this one?"), key="what_if.back", on_click=_trace_back, args=(sender,))
    config = prompts.clean.config
    if config.kv_heads < config.n_heads and asked.into in ("k", "v"):
        show_note("Several heads of this model share a key and a value: all that share this one receive what is sent.")
    show_note(
        "Only the sender is taken from the other prompt, all other heads stay as they are, and the receiver alone takes "
        "in what has changed (Wang et al. 2022; Goldowsky-Dill et al. 2023). The feed-forward networks on the way are "
        "part of the path. By a query and the keys a head decides where it looks; the values are what it takes from "
        "there."
    )


def _trace_back(sender: Part) -> None:
    """The sender becomes the receiver, and those send that are read for its keys."""
    lesson.change(TO, "k", "logits")
    lesson.change(HEAD, ablated_parts.write([sender]), "")
    lesson.change(CELL, "", "")  # the strongest sender
    if sender.sublayer.endswith("cross"):
        state.update(kind="encoder")


def code(prompts: Prompts, asked: Path, sender: tuple[str, int] | None) -> list[str]:
    """The map, and the run of the chosen path."""
    names = "path_patch_runs, prompt_pair" if asked.head is None else "Receiver, path_patch_runs, prompt_pair"
    receivers = "[]"
    if asked.head is not None:
        receivers = f"[Receiver({asked.head.sublayer!r}, {asked.head.head}, {asked.into!r})]"
    imports = [f"from vizformer.analysis import {names}"]
    if sender is not None:
        imports = [
            f"from vizformer.analysis import {names.replace('path_patch_runs', 'path_edit, path_patch_runs')}",
            "from vizformer.analysis.causes.ablation import Part",
        ]
    held = f", held={asked.held!r}"
    lines = [
        *opening(prompts, *imports),
        f"receivers = {receivers}  # none: the logits" if asked.head is None else f"receivers = {receivers}",
        f"found = path_patch_runs(checkpoint, pair, {asked.kind!r}, receivers{held})",
        "print(found.share.round(3))",
    ]
    if sender is not None:
        clean, held_text = prompts.clean, (prompts.clean if asked.held == "clean" else prompts.corrupted).text
        both = len(clean.trace.tokens) == 2
        target = f", target={clean.target!r}" if clean.target and both else ""
        lines += [
            f"edit = path_edit(checkpoint, pair, [Part({sender[0]!r}, {sender[1]})], receivers{held})",
            f"patched = checkpoint.trace({held_text!r}{target}, edit=edit)",
            "print(*(pair.difference(run.logits) for run in (pair.corrupted, patched, pair.clean)))",
        ]
    return lines

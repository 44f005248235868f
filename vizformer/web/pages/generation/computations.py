"""Cached texts of the page Generation: written once, then shown step by step."""

import json
from dataclasses import dataclass, fields

import numpy as np

from vizformer.analysis import Kind, TraceNumbers
from vizformer.analysis.costs.generation_cost import RecordedCache, TextCosts, recorded_cache, text_costs
from vizformer.analysis.decoding.read_back import ReadBack, all_read_back, goes_both_ways
from vizformer.components.packing import HeadsPayload, pack_lines
from vizformer.components.player import DecoderKind, Steps, read_branch
from vizformer.generation import GREEDY, BeamTree, Hypothesis, Sampling, leading_candidates
from vizformer.model import Trace
from vizformer.text import Token, Tokenizer
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, written
from vizformer.web.link import edits
from vizformer.web.link.generation_settings import MOST_IN_A_BEAM, Settings
from vizformer.web.link.model_ref import USUAL_DTYPE
from vizformer.web.widgets import in_python
from vizformer.web.words import labels

LIMIT_BYTES = 2_000_000  # of attention maps that go to the browser at once


@dataclass(frozen=True)
class Text:
    """A generated text, read as a whole; `tokens` begin with `start` ones that were given."""

    source: tuple[Token, ...]
    tokens: tuple[Token, ...]  # what the decoder's sequence began with, and the new ones
    start: int
    steps: Steps  # what each new one was chosen from
    trace: Trace  # one forward over everything but the last token, which no forward has read
    read: str
    costs: (
        TextCosts | RecordedCache
    )  # multiplications and bytes of the KV cache, step by step; of recorded code the bytes

    @property
    def kinds(self) -> tuple[DecoderKind, ...]:
        return ("decoder", "cross") if self.source else ("decoder",)

    @property
    def least_sure(self) -> int | None:
        """The new token, by its number, to which the model gave the least probability; None where there is none."""
        steps = self.steps
        given = steps.before[steps.candidates == np.array(steps.ids, dtype=np.int64)[:, None]]  # (each is among them)
        return int(given.argmin()) if len(given) else None


@cached
def text(subject: Subject, settings: Settings, branch: str) -> Text:
    """The text that is written from the subject's, with these settings and tokens taken by hand."""
    loaded, edit = subject.checkpoint, edits.edit(subject.edited)
    source, beginning = loaded.opening(subject.text, subject.target)
    instead = {one.step: one.id for one in read_branch(branch) or ()}
    is_target = (
        subject.writes_its_target and settings.sampling == GREEDY and not instead
    )  # written for its trace already
    if is_target:
        found = written(subject).first(settings.new)
    else:
        found = leading_candidates(
            loaded.stream(
                subject.text,
                target=subject.target,
                sampling=settings.sampling,
                max_new=settings.new,
                instead=instead,
                edit=edit,
            )
        )
    start = [token.id for token in beginning]
    every = [*start, *found.ids]
    if is_target and found.end == "eos":
        trace = subject.trace
    elif not source:
        trace = loaded.trace(ids=every[:-1], edit=edit)
    else:
        trace = loaded.trace(ids=[token.id for token in source], target_ids=every[:-1], edit=edit)
    return Text(
        source=source,
        tokens=(*beginning, *loaded.tokenizer.tokens(found.ids)),
        start=len(start),
        steps=Steps(
            ids=found.ids,
            candidates=found.candidates,
            names=_names(loaded.tokenizer, found.seen),
            before=found.before,
            after=found.after,
            cut=found.cut,
            kept=found.kept,
            by_hand=found.by_hand,
            vocab_size=loaded.shape.vocab_size,
            end=str(found.end),
        ),
        trace=trace,
        read=loaded.tokenizer.decode(every).strip(),
        costs=text_costs(subject.config, len(start), len(found.ids), len(source))
        if loaded.is_own
        else recorded_cache(trace, len(start), len(found.ids)),
    )


@cached
def heads(subject: Subject, settings: Settings, branch: str, kind: Kind, layer: int) -> HeadsPayload:
    """The heads of one kind for the player: all of them where they fit, else those of one layer."""
    found = TraceNumbers(text(subject, settings, branch).trace).heads(kind)
    return pack_lines(found, layer=min(layer, found.shape[0] - 1), limit=LIMIT_BYTES)


@dataclass(frozen=True)
class Beam:
    """A beam search: its tree, the texts of the ids in it, and what it found, best first."""

    tree: BeamTree
    names: dict[int, str]
    found: list[tuple[str, Hypothesis]]
    # by the text that was found, how well the sentence is found again from it; empty where the model translates one way
    # only, or was given how the translation begins
    read_back: dict[str, ReadBack]


@cached
def beam(subject: Subject, settings: Settings) -> Beam:
    loaded, tree = subject.checkpoint, BeamTree()
    found = loaded.beam(
        subject.text,
        target=subject.target,
        width=settings.width,
        alpha=settings.alpha,
        max_new=min(settings.new, MOST_IN_A_BEAM),
        tree=tree,
    )
    judged = all_read_back(loaded, subject.text, found) if goes_both_ways(loaded) and not subject.target.strip() else []
    names = _names(loaded.tokenizer, sorted({node.id for node in tree.nodes}))
    return Beam(tree, names, found, {one.text: one for one in judged})


def _names(tokenizer: Tokenizer, ids: list[int]) -> dict[int, str]:
    """Texts of ids, told apart where they read the same; a table of embeddings may have more rows than there are tokens."""
    known = [id for id in ids if id < tokenizer.vocab_size]
    names = labels.told_apart(tokenizer.tokens(known))
    return {**{id: f"#{id}" for id in ids}, **dict(zip(known, names, strict=True))}


# The text of the page Generation in Python: with this package, and with `transformers` for models in its format.
def of_text(subject: Subject, settings: Settings, branch: str) -> dict[str, str]:
    """The text that is written token by token, by the package that the code needs.

    `transformers` writes it greedily alone: what is drawn there is drawn from other random numbers.
    """
    found = {"vizformer": _vizformer(subject, settings, branch)}
    plain = settings.sampling.temperature == 0 and settings.penalty == 1 and not branch and not subject.edited
    if plain and model_cache.written_as(subject.model) == "hugging-face" and subject.model.dtype == USUAL_DTYPE:
        found["transformers"] = _transformers(subject, settings)
    return found


def of_beam(subject: Subject, settings: Settings) -> dict[str, str]:
    given = _target(subject)
    lines = [
        *in_python.imports(subject.model),
        "",
        f"checkpoint = {in_python.loaded(subject.model)}",
        f"found = checkpoint.beam({subject.text!r}{given}, width={settings.width}, alpha={settings.alpha}, "
        f"max_new={min(settings.new, MOST_IN_A_BEAM)})",
        "for text, hypothesis in found:",
        "    print(hypothesis.score, text)",
    ]
    return {"vizformer": "\n".join(lines)}


def _vizformer(subject: Subject, settings: Settings, branch: str) -> str:
    given, imports = _target(subject), in_python.imports(subject.model)
    if settings.sampling.temperature > 0 or settings.penalty != 1:
        imports.append("from vizformer.generation import Sampling")
        given += f", sampling={_written(settings.sampling)}"
    if taken := {one.step: one.id for one in read_branch(branch) or ()}:
        given += f", instead={taken}"
    if subject.edited:
        imports.append("from vizformer.model import Cell, Edit")
        given += f", edit={edits.edit(subject.edited)!r}"
    return "\n".join(
        [
            *imports,
            "",
            f"checkpoint = {in_python.loaded(subject.model)}",
            f"steps = list(checkpoint.stream({subject.text!r}{given}, max_new={settings.new}))",
            "ids = [step.id for step in steps]",
            "print(checkpoint.tokenizer.decode(ids).strip())",
        ]
    )


def _transformers(subject: Subject, settings: Settings) -> str:
    source, beginning = (
        [token.id for token in tokens] for tokens in subject.checkpoint.opening(subject.text, subject.target)
    )
    name, at = in_python.name_and_revision(subject.model)
    shape = subject.shape
    room = min(settings.new, shape.max_positions - len(beginning))
    # Against what a generation_config.json beside the weights may say.
    plainly = "do_sample=False, num_beams=1, repetition_penalty=1.0, no_repeat_ngram_size=0, min_length=0"
    plainly += "" if shape.eos_id is None else f", eos_token_id={shape.eos_id}"
    kind = "AutoModelForSeq2SeqLM" if source else "AutoModelForCausalLM"
    read = f"torch.tensor([{source or beginning}])"
    given = f", decoder_input_ids=torch.tensor([{beginning}])" if source else ""
    return "\n".join(
        [
            "import torch",
            f"from transformers import AutoTokenizer, {kind}",
            "",
            f"name = {json.dumps(name, ensure_ascii=False)}",
            f"model = {kind}.from_pretrained(name{at}).eval()",
            f"ids = model.generate({read}{given}, max_new_tokens={room}, {plainly})[0]",
            f"ids = ids[{len(beginning)}:].tolist()",
            f"print(AutoTokenizer.from_pretrained(name{at}).decode(ids, skip_special_tokens=True).strip())",
        ]
    )


def _target(subject: Subject) -> str:
    return f", target={subject.target!r}" if subject.target.strip() else ""


def _written(sampling: Sampling) -> str:
    """The options that are not as they are by default."""
    own = ((field.name, getattr(sampling, field.name)) for field in fields(sampling))
    usual = type(sampling)()
    return f"Sampling({', '.join(f'{name}={value!r}' for name, value in own if value != getattr(usual, name))})"

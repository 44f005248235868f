"""The text of the page Generation in Python: with this package, and with `transformers` for models in its format."""

import json
from dataclasses import fields

from vizformer.components.player import read_branch
from vizformer.generation import Sampling
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits
from vizformer.web.link.generation_settings import MOST_IN_A_BEAM, Settings
from vizformer.web.link.model_ref import USUAL_DTYPE
from vizformer.web.widgets import in_python


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
        "import vizformer as vf",
        "",
        f"checkpoint = {in_python.loaded(subject.model)}",
        f"found = checkpoint.beam({subject.text!r}{given}, width={settings.width}, alpha={settings.alpha}, "
        f"max_new={min(settings.new, MOST_IN_A_BEAM)})",
        "for text, hypothesis in found:",
        "    print(hypothesis.score, text)",
    ]
    return {"vizformer": "\n".join(lines)}


def _vizformer(subject: Subject, settings: Settings, branch: str) -> str:
    given, imports = _target(subject), ["import vizformer as vf"]
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

"""The guesses of the page Fill in the blank in Python: with this package, or with `transformers` in its format."""

import json

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import USUAL_DTYPE
from vizformer.web.tools.fill_mask.gaps import Positions
from vizformer.web.widgets import in_python


def of_gap(subject: Subject, hidden: Positions, position: int) -> dict[str, str]:
    """The most probable words of one gap, by the package that the code needs."""
    places, model = ", ".join(map(str, sorted(hidden))), subject.model
    found = {
        "vizformer": "\n".join(
            [
                "import vizformer as vf",
                "from vizformer.analysis import hide, next_tokens",
                "",
                f"checkpoint = {in_python.loaded(model)}",
                f"tokens = checkpoint.encode({subject.text!r})",
                f"trace = hide(checkpoint, tokens, {{{places}}})",
                f"best = next_tokens(checkpoint, trace, {position})",
                "print([(one.token.text, one.probability) for one in best])",
            ]
        )
    }
    if subject.checkpoint.report.format != "hugging-face" or model.dtype != USUAL_DTYPE:
        return found
    mask = subject.config.mask_id
    ids = [mask if at in hidden else token.id for at, token in enumerate(subject.tokens)]
    name, at = in_python.name_and_revision(model)
    segments = subject.checkpoint.segments(subject.tokens)
    given = "" if segments is None else f", token_type_ids=torch.tensor({segments.tolist()})"
    found["transformers"] = "\n".join(
        [
            "import torch",
            "from transformers import AutoModelForMaskedLM, AutoTokenizer",
            "",
            f"name = {json.dumps(name, ensure_ascii=False)}",
            f"model = AutoModelForMaskedLM.from_pretrained(name{at}).eval()",
            "with torch.no_grad():",
            f"    logits = model(torch.tensor([{ids}]){given}).logits[0, {position}]",
            "best = logits.double().softmax(-1).topk(10)",
            f"names = AutoTokenizer.from_pretrained(name{at}).convert_ids_to_tokens(best.indices.tolist())",
            "print(list(zip(names, best.values.tolist())))",
        ]
    )
    return found

"""A model in one line, and the memory that it takes, in the reader's words."""

from vizformer.checkpoints import Report
from vizformer.checkpoints.agreement_check import Agreement
from vizformer.checkpoints.tensors.memory import Need, available, chosen_device, size
from vizformer.messages import N_, Message
from vizformer.web.words.i18n import _, translate

ARCHITECTURES: dict[str, Message] = {
    "encoder-decoder": N_("encoder and decoder"),
    "decoder-only": N_("decoder only"),
    "encoder-only": N_("encoder only"),
}

DOES: dict[str, Message] = {
    "zh-en": N_("translates Chinese and English"),
    "stories": N_("continues English and Chinese"),
    "cloze": N_("fills blanks, English and Chinese"),
    "induction-by-hand": N_("continues letters that repeat"),
    "encoder-decoder": N_("turns one text into another"),
    "decoder-only": N_("continues a text"),
    "encoder-only": N_("fills in hidden tokens"),
    "headless": N_("turns tokens into vectors"),
    "code": N_("runs its own code"),
}
"""What the bundled models do, by their names, and others by their architecture: five words at most."""


def headline(report: Report) -> str:
    """What a model is: family, architecture, sizes, and the scripts of its vocabulary."""
    shape = report.shape
    depth = " + ".join(str(n) for n in (shape.n_encoder_layers, shape.n_decoder_layers) if n)
    tokens = _("{n} tokens", n=f"{shape.vocab_size:,}")
    return " · ".join(
        [
            report.family,
            translate(ARCHITECTURES[shape.architecture]),
            _("{layers} layers of {heads} heads", layers=depth, heads=shape.n_heads),
            _("{n} parameters", n=f"{report.n_parameters:,}"),
            f"{tokens} ({', '.join(scripts)})" if (scripts := report.main_scripts) else tokens,
        ]
    )


def memory(needed: Need, device: str) -> str:
    """A sentence about the memory that a model needs, and how much is free."""
    said = _(
        "On {device}. Besides memory mapped from the file, the weights take {weights} of memory, and a text "
        "of {n} tokens {forward}.",
        weights=size(needed.weights),
        forward=size(needed.forward),
        n=needed.tokens,
        device=device,
    )
    free = available(chosen_device(device))
    return said if free is None else f"{said} " + _("{free} are free.", free=size(free))


def agreement(found: Agreement) -> str:
    """The badge: what was compared, and how far apart it is."""
    values = dict(
        version=found.version,
        n=found.tokens,
        maps=f"{found.maps:.1g}",
        z=f"{found.z:.1g}",
        dtype=found.dtype,
        tolerance=f"{found.tolerance:.2g}",
        units=found.units,
    )
    if found.holds:
        said = _(
            "The same numbers as transformers {version} for your sentence ({n} tokens): attention maps "
            "differ by at most {maps}, the outputs of heads (z) by at most {z}.",
            **values,
        )
    else:
        said = _(
            "The numbers differ from transformers {version} for your sentence ({n} tokens): attention "
            "maps by up to {maps}, the outputs of heads (z) by up to {z}.",
            **values,
        )
    if found.logits is not None:
        said += " " + _("Logits differ by at most {logits}.", logits=f"{found.logits:.1g}")
    if found.dtype == "float32":
        return said
    return (
        said
        + " "
        + _(
            "(Both in {dtype}, where {units} units in the last place are allowed, {tolerance} of a number's size.)",
            **values,
        )
    )

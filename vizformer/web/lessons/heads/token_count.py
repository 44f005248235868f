"""How many tokens the costs of heads are counted for: the sentence's own, or more."""

from vizformer.web.widgets.lab import Laboratory

LENGTHS = (0, 128, 512, 2048, 8192, 32768)  # tokens; 0: as many as the sentence has


def asked_length(lab: Laboratory, name: str, own: int) -> int:
    """Asks for a number of tokens: the sentence's `own`, or a larger one."""
    return lab.steps(name, LENGTHS, 0, lambda n: f"{n:,}" if n else lab.text("yours", n=own)) or own


def tex_number(value: int) -> str:
    return f"{value:,}".replace(",", r"\,")

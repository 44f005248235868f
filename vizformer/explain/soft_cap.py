"""The soft cap of scores and of logits, as it is written: cap * tanh(x / cap)."""

from vizformer.explain import latex
from vizformer.messages import N_, Message

SCORES_TITLE = N_("Soft cap: bend the large scores")


def scores_text(cap: float) -> Message:
    """What is said of the scores under it."""
    return N_(
        "Divided by the cap, c = {cap}, bent by tanh, and multiplied by it again: a small score stays about what it was, and "
        "none goes beyond ±{cap}. So no single key can take all the weight for good.",
        cap=f"{cap:g}",
    )


def formula(bent: str, x: str) -> str:
    """`bent` is the symbol of what comes out, `x` of what goes in; LaTeX."""
    return rf"{bent} = c \tanh\frac{{{x}}}{{c}}"


def live(bent: str, cap: float, x: float, result: float) -> str:
    """The same with numbers."""
    c = latex.number(cap)
    return rf"{bent} = {c} \cdot \tanh\frac{{{latex.number(x)}}}{{{c}}} = {latex.number(result)}"


def code(cap: float, name: str) -> str:
    """In torch, of the tensor `name`."""
    return f"{cap!r} * torch.tanh({name} / {cap!r})"

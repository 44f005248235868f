"""What a head does to the logits of what it looks at, in a sentence."""

from collections.abc import Sequence

from vizformer.analysis import SignedRole, signed_role
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.web.words.i18n import _


def role_or_none(checkpoint: Checkpoint, traces: Sequence[Trace], site: str, head: int) -> SignedRole | None:
    """The signed role of a head in these traces; None where it is not defined."""
    try:
        return signed_role(checkpoint, traces, site, head)
    except TraceError:
        return None


def role_said(found: SignedRole) -> str:
    values = {"n": len(found.effects), "mean": f"{found.mean:+.3f}".replace("-", "−")}
    if found.role == "copying":
        return _(
            "This head copies: it raises the logits of the tokens to which it attends, by {mean} on average over "
            "{n} rows.",
            **values,
        )
    if found.role == "suppressing":
        return _(
            "This head suppresses: it lowers the logits of the tokens to which it attends, by {mean} on average "
            "over {n} rows, mostly of tokens that would be probable without it.",
            **values,
        )
    if found.role == "anti-copying":
        return _(
            "This head anti-copies: it lowers the logits of the tokens to which it attends, by {mean} on "
            "average over {n} rows.",
            **values,
        )
    return _(
        "This head neither copies nor suppresses the tokens to which it attends ({mean} on their logits, on "
        "average over {n} rows): it does something else, or writes for other heads.",
        **values,
    )

"""What a head does to the logits of what it looks at, in a sentence."""

from vizformer.analysis import SignedRole
from vizformer.web.words.i18n import _


def role_said(found: SignedRole) -> str:
    values = {"n": len(found.effects), "mean": f"{found.mean:+.3f}".replace("-", "−")}
    if found.role == "copying":
        return _(
            "This head copies: the logits of the tokens that it looks at rise, by {mean} on average over {n} rows.",
            **values,
        )
    if found.role == "suppressing":
        return _(
            "This head suppresses: the logits of the tokens that it looks at fall, by {mean} on average over {n} rows, and "
            "most of it falls on tokens that would be expected otherwise.",
            **values,
        )
    if found.role == "anti-copying":
        return _(
            "This head works against copying: the logits of the tokens that it looks at fall, by {mean} on average over "
            "{n} rows.",
            **values,
        )
    return _(
        "This head neither copies nor suppresses what it looks at ({mean} on their logits, on average over {n} rows): it "
        "does something else, or writes for other heads.",
        **values,
    )

"""The tokens of a text with the spaces between them."""

from vizformer.web.catalogue.subject import Subject

_SPACES = ("Ġ", "▁")  # as vocabularies write the space before a word


def tokens_with_spaces(subject: Subject, stack: str) -> list[str]:
    """The tokens of a stack, each with the space or the line break that stands before it in the text."""
    tokens = subject.trace.tokens[stack]
    source = subject.text if stack == "encoder" or "encoder" not in subject.trace.tokens else subject.target
    running, end, broken = [], 0, False
    for token in tokens:
        own = source[token.start : token.end]
        before = source[end : token.start] + (own if own.strip() else "") if token.end else ""
        gap = before[: len(before) - len(before.lstrip())]
        if not token.end and token.piece[:1] in _SPACES:  # in a text that the model wrote
            gap = " "
        running.append(("\n" if broken else gap) + token.text)
        end, broken = token.end or end, bool(own) and not own.strip() and "\n" in own  # a token that is a line's end
    return running

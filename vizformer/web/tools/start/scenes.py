"""The scenes of the walk in words: what each shows, with the sentence's own tokens and numbers in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vizformer.analysis.attribution.forward_scenes import Look, Walkthrough
from vizformer.components.walkthrough import Candidates, Lines, Piece, Scene, SceneKind, Strips, Walk
from vizformer.config import ModelConfig
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.start import computations
from vizformer.web.widgets import row_names
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _, language


def walk(subject: Subject) -> Walk:
    """What the component draws, in the reader's language."""
    found, config = computations.numbers(subject), subject.config
    text = drawn_text(subject, found)
    chosen = found.writing.choices if found.writing else ()
    pieces = [Piece(token.text, token.id, token.start, token.end, token.special) for token in found.tokens]
    texts = [piece.text for piece in pieces]
    queries = row_names.choosing(labels.texts(found.target), chosen)
    written = None
    if found.target and found.writing:
        written = Candidates(queries, [float(p) for p in found.writing.probabilities])
    return Walk(
        scenes=[
            Scene("characters", _("Characters"), characters(subject.text), _("Six ways to cut a text"), 6),
            Scene("tokens", _("Tokens"), tokens(found) + direction(subject, found), _("Tokens and embeddings"), 8),
            Scene("vectors", _("Vectors"), vectors(found, config), _("The look-up"), 8),
            Scene(*position(found, config), _("Positions"), 9),
            Scene("attention", _("Attention"), attention(found), _("Every number of this row"), 10),
            Scene("residual", _("Residual stream"), residual(found, config), _("Add & norm, feed-forward"), 10),
            Scene("layers", _("Layer by layer"), layers(found), _("The map"), 9),
            *end(subject, found),
        ],
        characters=list(text),
        tokens=pieces,
        followed=found.followed,
        note=note(found),
        embedded=found.embedded,
        added=found.added,
        entering=found.entering,
        angles=found.angles,
        bias=found.bias,
        attention=lines(found.look, texts, texts),
        sublayers=Strips(sublayer_names(found, config), found.sublayers.cells, found.sublayers.lengths.tolist()),
        layers=Strips(layer_names(found), found.layers.cells, found.layers.lengths.tolist(), found.cosines.tolist()),
        cross=None if found.cross is None else lines(found.cross, queries[: len(found.target)], texts),
        next=candidates(found),
        written=written,
        name=repr(subject),
    )


# --- one sentence a scene ---------------------------------------------------------------------------------------------


def drawn_text(subject: Subject, found: Walkthrough) -> str:
    """The text as far as its tokens are drawn."""
    if found.count == len(found.tokens):
        return subject.text
    return subject.text[: max((token.end for token in found.tokens), default=0)] or subject.text


def characters(text: str) -> str:
    return _(
        "“{text}”: {count}, and the model is given nothing else.",
        text=shortened(text),
        count=counts.characters(len(text)),
    )


def tokens(found: Walkthrough) -> str:
    token = found.tokens[found.followed]
    return _(
        "The text is cut into pieces from a list of {vocabulary}, {count} of them here: “{token}” is number {id}.",
        vocabulary=f"{found.vocab_size:,}",
        count=found.count,
        token=token.text,
        id=token.id,
    )


def direction(subject: Subject, found: Walkthrough) -> str:
    """What the first token is for, of a translator of both directions; empty for others."""
    first = found.tokens[0]
    if first.piece not in subject.checkpoint.tokenizer_of("encoder").first_tokens.values():
        return ""
    return _(" The model puts “{token}” before it: the language it is to translate into.", token=first.text)


def vectors(found: Walkthrough, config: ModelConfig) -> str:
    row, scaled = found.embedded[found.followed], config.embedding_factor
    values: dict[str, Any] = {"token": found.tokens[found.followed].text, "width": found.width}
    values |= dict(zip("abc", map(number, row), strict=False))
    if scaled != 1:
        return _(
            "Each number picks a row of a learned table, times {factor}: “{token}” becomes {width} numbers, "
            "the first three {a}, {b} and {c}.",
            factor=f"{scaled:.4g}",
            **values,
        )
    return _(
        "Each number picks a row of a learned table: “{token}” becomes {width} numbers, the first three {a}, {b} and {c}.",
        **values,
    )


def position(found: Walkthrough, config: ModelConfig) -> tuple[SceneKind, str, str]:
    """The kind of picture, its title and sentence: how this model is told where a token stands."""
    at, title = found.followed, _("Positions")
    token = found.tokens[at].text
    if found.added is not None:
        values = {
            "token": token,
            "position": at,
            "e": number(found.embedded[at, 0]),
            "p": signed(found.added[at, 0]),
            "x": number(found.entering[at, 0]),
        }
        if found.plain:
            said = _(
                "Where a token stands is a row of numbers too, and is added: the first number of “{token}”, at position "
                "{position}, becomes {e} {p} = {x}.",
                **values,
            )
        else:
            said = _(
                "Where a token stands is a row of numbers too, and is added; then the sum is normalised: the first "
                "number of “{token}”, at position {position}, goes from {e} {p} to {x}.",
                **values,
            )
        return "added", title, said
    if found.angles is not None:
        said = _(
            "Nothing is added for the place (RoPE): attention turns each query and key by angles instead; for “{token}”, at "
            "position {position}, the fastest pair of numbers by {degrees}°.",
            token=token,
            position=at,
            degrees=number(np.degrees(found.angles[at, 0])),
        )
        return "turned", title, said
    if found.bias is not None:
        key = found.look.key
        said = _(
            "Nothing is added for the place ({scheme}): attention changes its scores by the distance; in head "
            "{head}, that of “{token}” with “{key}” by {bias}.",
            scheme={"alibi": "ALiBi", "relative": "T5"}.get(config.positions, "DeBERTa"),
            head=found.look.head,
            token=token,
            key=found.tokens[key].text,
            bias=signed(found.bias[key]),
        )
        return "biased", title, said
    said = _("This model is told nothing of places: the row of “{token}” is the same wherever it stands.", token=token)
    return "unplaced", title, said


def attention(found: Walkthrough) -> str:
    look = found.look
    return _(
        "Each token looks at the others: in head {head} of layer {layer}, “{token}” looks at “{key}” with weight "
        "{weight}, and the weights of its row sum to {total}.",
        head=look.head,
        layer=look.layer,
        token=found.tokens[look.query].text,
        key=found.tokens[look.key].text,
        weight=f"{look.weight:.3f}",
        total=f"{look.weights[look.query].sum() + look.elsewhere[look.query]:.3g}",
    )


def residual(found: Walkthrough, config: ModelConfig) -> str:
    before, _brought, between, after = map(number, found.sublayers.lengths)
    values = {
        "token": found.tokens[found.followed].text,
        "layer": found.look.layer,
        "heads": counts.heads(config.n_heads),
    }
    lengths = {"before": before, "between": between, "after": after}
    if config.residual == "none":
        return _(
            "What attention brings in layer {layer} ({heads}) takes the place of the row of “{token}”, and then what a "
            "feed-forward network makes of it: the row's length goes {before} → {between} → {after}.",
            **values,
            **lengths,
        )
    if config.norm_order == "post":
        return _(
            "What attention brings in layer {layer} ({heads}) is added to the row of “{token}” and the sum normalised; then "
            "the same with a feed-forward network: the row's length goes {before} → {between} → {after}.",
            **values,
            **lengths,
        )
    return _(
        "What attention brings in layer {layer} ({heads}) is added to the row of “{token}”, and then what a feed-forward "
        "network makes of it: the row's length goes {before} → {between} → {after}.",
        **values,
        **lengths,
    )


def layers(found: Walkthrough) -> str:
    return _(
        "So it goes from layer to layer, {layers} in all: the row of “{token}” ends {length} long, and its direction has "
        "a cosine of {cosine} with where it began.",
        layers=len(found.layers.lengths) - 1,
        token=found.tokens[found.followed].text,
        length=number(found.layers.lengths[-1]),
        cosine=number(found.cosines[-1]),
    )


def end(subject: Subject, found: Walkthrough) -> list[Scene]:
    """What comes out: of a decoder that looks at the encoder, after the last token, or in place of one."""
    scenes = []
    architecture = subject.config.architecture
    if found.cross is not None:
        scenes.append(Scene("cross", _("The decoder looks"), cross(found, found.cross), _("Encoder meets decoder"), 10))
    if found.candidates:
        best, tokens = found.candidates[0], found.target or found.tokens
        values = {
            "token": tokens[found.position].text,
            "vocabulary": f"{found.vocab_size:,}",
            "best": best.token.text,
            "percent": labels.percent(best.probability),
        }
        if architecture == "encoder-only":
            said = _(
                "The last row of “{token}” becomes a probability for each token of the vocabulary, to stand in this "
                "place: “{best}” has {percent}.",
                **values,
            )
            scenes.append(Scene("next", _("What stands here?"), said, _("Fill in the blank"), 8))
        else:
            said = _(
                "The last row after “{token}” becomes a probability for each token of the vocabulary, to be the next: "
                "“{best}” has {percent}.",
                **values,
            )
            scenes.append(Scene("next", _("The next token"), said, _("Ways of choosing"), 8))
    if found.target and found.writing:
        words = shortened(subject.translation or "")
        scenes.append(Scene("written", _("Token by token"), written(words, found), _("Shifted by one"), 7))
    return scenes


def cross(found: Walkthrough, look: Look) -> str:
    values = {
        "head": look.head,
        "layer": look.layer,
        "token": found.target[look.query].text,
        "key": found.tokens[look.key].text,
        "weight": f"{look.weight:.3f}",
    }
    if found.writing is None:
        return _(
            "The decoder looks at the encoder's last rows: in head {head} of layer {layer}, its row “{token}” looks at "
            "“{key}” with weight {weight}.",
            **values,
        )
    return _(
        "The decoder looks at the encoder's last rows: in head {head} of layer {layer}, its row after “{token}”, there to "
        "choose “{next}”, looks at “{key}” with weight {weight}.",
        **values,
        next=found.writing.choices[look.query].next.text,
    )


def written(words: str, found: Walkthrough) -> str:
    own = found.writing is not None and all(choice.own.id == choice.next.id for choice in found.writing.choices)
    if own:
        return _(
            "Row after row chooses a token, each with those before it to look at: “{text}”. The bars are their "
            "probabilities.",
            text=words,
        )
    return _(
        "Row after row is asked for a token, each with those before it to look at: “{text}”. The bars are the "
        "probabilities that the model gives them.",
        text=words,
    )


def note(found: Walkthrough) -> str:
    """What is not drawn, and what the colours mean."""
    cells = found.embedded.shape[1]
    said = [
        _("Of every row of {width} numbers, the first {cells} are drawn.", width=found.width, cells=cells)
        if cells < found.width
        else _("Of every row, all {width} numbers are drawn.", width=found.width),
        _("Blue is above 0, orange below; where one row is followed, each strip has a range of its own."),
    ]
    if found.count > len(found.tokens):
        shown = _(
            "The text has {count} tokens; the first {shown} are drawn.", count=found.count, shown=len(found.tokens)
        )
        said.insert(0, shown)
    return ("" if language().startswith("zh") else " ").join(said)


# --- names and numbers ------------------------------------------------------------------------------------------------


def sublayer_names(found: Walkthrough, config: ModelConfig) -> list[str]:
    token, layer = found.tokens[found.followed].text, found.look.layer
    if config.residual == "none":
        after = [_("what takes its place"), _("after the feed-forward network")]
    elif config.norm_order == "post":
        after = [_("= their sum, normalised"), _("= after the feed-forward network, normalised again")]
    else:
        after = [_("= their sum"), _("= with what the feed-forward network adds")]
    return [
        _("“{token}” before layer {layer}", token=token, layer=layer),
        _("+ what attention brings, all heads"),
        *after,
    ]


def layer_names(found: Walkthrough) -> list[str]:
    count = len(found.layers.lengths) - 1
    return [_("at the start"), *(_("after layer {layer}", layer=layer) for layer in range(count))]


def lines(look: Look, queries: Sequence[str], keys: Sequence[str]) -> Lines:
    return Lines(queries, keys, look.query, look.key, look.weights, look.blocked, look.elsewhere)


def candidates(found: Walkthrough) -> Candidates | None:
    if not found.candidates:
        return None
    names = labels.told_apart([prediction.token for prediction in found.candidates])
    ids = [prediction.token.id for prediction in found.candidates]
    follows: Token | None = found.writing.choices[found.position].next if found.writing else None
    chosen = ids.index(follows.id) if follows is not None and follows.id in ids else None
    return Candidates(names, [prediction.probability for prediction in found.candidates], chosen)


def number(value: float) -> str:
    """A number of any size in a few digits, with a true minus sign; as the component writes them."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 4
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """The same with its sign before it, as a term of a sum."""
    return f"− {number(-value)}" if value < 0 else f"+ {number(value)}"


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

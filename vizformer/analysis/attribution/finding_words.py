"""The findings of a scan as sentences, and where their pictures are."""

from collections.abc import Mapping
from urllib.parse import urlencode

from vizformer.analysis.attribution.findings import Finding
from vizformer.messages import N_, Message


def sentence(finding: Finding) -> Message:
    """One finding in words.

    >>> found = {"position": 0, "token": "a", "answer": "b", "probability": 0.5, "rank": 1, "tied": 1}
    >>> str(sentence(Finding("predicted", found)))
    'At position 0, “a”, the model says “b”, with 50.0%.'
    """
    values = finding.values
    given = {name: value for name, value in values.items() if not isinstance(value, float)}
    place = _place(finding)
    if finding.what == "predicted":
        p = f"{values['probability']:.1%}"
        if values["tied"] > 1:
            return N_(
                "At position {position}, “{token}”, “{answer}” has {p}: it is one of {tied} tokens that tie for number "
                "{rank}.",
                p=p,
                **given,
            )
        if values["rank"] == 1:
            return N_("At position {position}, “{token}”, the model says “{answer}”, with {p}.", p=p, **given)
        return N_(
            "At position {position}, “{token}”, “{answer}” has {p}: it is number {rank} of all tokens.", p=p, **given
        )
    if finding.what in ("settles", "lost", "never"):
        return _lens(finding, given)
    if finding.what == "part":
        raises, value, logit = values["value"] > 0, f"{abs(values['value']):.2f}", f"{values['logit']:.2f}"
        if raises:
            return N_(
                "{place} adds {value} to the logit of “{answer}”, which stands {logit} above the mean of all tokens.",
                place=place,
                value=value,
                logit=logit,
                answer=values["answer"],
            )
        return N_(
            "{place} takes {value} off the logit of “{answer}”, which stands {logit} above the mean of all tokens.",
            place=place,
            value=value,
            logit=logit,
            answer=values["answer"],
        )
    if finding.what == "layer":
        return N_(
            "Of all layers, layer {layer} adds most to “{answer}”: {value} of {logit}.",
            layer=finding.layer,
            answer=values["answer"],
            value=f"{values['value']:.2f}",
            logit=f"{values['logit']:.2f}",
        )
    if finding.what in ("needed", "needed_layer", "unmeasured"):
        return _needed(finding)
    if finding.what in ("copies", "induction"):
        return _copying(finding, place)
    if finding.what == "reads":
        return N_(
            "It finds the place by what {place} wrote there: that one looks at the token before, with {weight} at position "
            "{key}, and its output becomes the key of layer {reader_layer}, head {reader_head} ({excess} deviations above "
            "chance).",
            place=place,
            weight=f"{values['weight']:.2f}",
            excess=f"{values['excess']:.0f}",
            **given,
        )
    return N_(
        "Many heads rest on token {key} “{token}”: for {share} % of the heads of {kind} it is a sink, most for {place} "
        "({most} of its attention).",
        key=values["key"],
        token=values["token"],
        share=f"{100 * values['share']:.0f}",
        most=f"{values['most']:.2f}",
        kind=_kinds(finding),
        place=N_("layer {layer}, head {head}", layer=finding.layer, head=finding.head),
    )


def address(finding: Finding, view: Mapping[str, str]) -> str:
    """Path and parameters of the picture in the app; `view` are those of text and model.

    >>> address(Finding("sink", {}, "decoder", 1, 2, 7), {"text": "a b"})
    '/attention?text=a+b&site=decoder&layer=1&head=2&query=7'
    """
    shown: dict[str, object] = dict(view)
    if finding.head is None:
        shown |= {} if finding.query is None else {"position": finding.query}
        return f"/lens?{urlencode(shown)}"
    shown |= {"site": finding.kind, "layer": finding.layer, "head": finding.head}
    shown |= {} if finding.query is None else {"query": finding.query}
    return f"/attention?{urlencode(shown)}"


def _lens(finding: Finding, given: dict[str, object]) -> Message:
    after = (
        N_("the embeddings alone") if finding.layer == -1 else N_("layer {layer}", layer=finding.layer)
    )  # fmt: skip
    if finding.what == "settles":
        p = f"{finding.values['probability']:.1%}"
        return N_(
            "In the logit lens “{answer}” is first from {after} on, there with {p}, and stays so.",
            after=after,
            p=p,
            **given,
        )
    if finding.what == "lost":
        return N_(
            "In the logit lens “{answer}” is first after {after}, but later layers put another token above it.",
            after=after,
            **given,
        )
    if finding.values["tied"] > 1:
        return N_(
            "In the logit lens “{answer}” is never alone in first place; it comes closest after {after}, as one of {tied} "
            "tokens that tie for number {rank}.",
            after=after,
            **given,
        )
    return N_(
        "In the logit lens “{answer}” is never first; it comes closest after {after}, as number {rank}.",
        after=after,
        **given,
    )


def _needed(finding: Finding) -> Message:
    values = finding.values
    if finding.what == "unmeasured":
        return N_(
            "What the answer needs was not measured: {runs} runs without a head or a layer take too long here.",
            runs=values["runs"],
        )
    numbers = {"answer": values["answer"], "p": f"{values['before']:.1%}", "q": f"{values['after']:.1%}"}
    if finding.what == "needed":
        return N_(
            "Without layer {layer}, head {head} of {kind} (zero in its place) the probability of “{answer}” falls from {p} "
            "to {q}.",
            layer=finding.layer,
            head=finding.head,
            kind=_kinds(finding),
            **numbers,
        )
    if not values["both"]:
        where = N_("layer {layer}", layer=finding.layer)
    elif values["stack"] == "encoder":
        where = N_("layer {layer} of the encoder", layer=finding.layer)
    else:
        where = N_("layer {layer} of the decoder", layer=finding.layer)
    return N_(
        "Of all layers, “{answer}” needs {where} most: without it, its probability falls from {p} to {q}.",
        where=where,
        **numbers,
    )


def _copying(finding: Finding, place: Message) -> Message:
    values = finding.values
    numbers = {
        "place": place,
        "answer": values["answer"],
        "key": values["key"],
        "weight": f"{values['weight']:.2f}",
        "value": f"{values['value']:.2f}",
        "logit": f"{values['logit']:.2f}",
    }
    if finding.what == "induction":
        return N_(
            "{place} copies it, as an induction head does: “{token}” stood in this text before, and the head looks at what "
            "followed it, “{answer}” at position {key}, with {weight}; from there come {value} of {logit}.",
            token=values["token"],
            **numbers,
        )
    return N_(
        "{place} copies it: it looks at “{answer}” at position {key}, with {weight}, and from there come {value} of "
        "{logit}.",
        **numbers,
    )


def _place(finding: Finding) -> Message:
    where = {"layer": finding.layer, "head": finding.head}
    if finding.values.get("network"):
        return N_("The feed-forward network of layer {layer}", layer=finding.layer)
    if finding.kind == "cross":
        return N_("Layer {layer}, head {head} of cross-attention", **where)
    if finding.what == "reads":
        return N_("layer {layer}, head {head}", **where)
    return N_("Layer {layer}, head {head}", **where)


def _kinds(finding: Finding) -> Message:
    if finding.kind == "cross":
        return N_("cross-attention")
    return N_("encoder self-attention") if finding.kind == "encoder" else N_("decoder self-attention")

"""The names of sites and points in words: what a trace calls "decoder.1.mid_self", for a sentence."""

from vizformer.messages import N_, Message


def in_words(name: str) -> Message:
    """A site or a point of the residual stream, as words that a sentence can go on with: "... recorded at {place}".

    >>> str(in_words("decoder.1.cross")), str(in_words("encoder.0.pre"))
    ('the cross-attention of decoder layer 1', 'the input of encoder layer 0')
    """
    stack, _, rest = name.partition(".")
    if rest == "final":
        return N_("the end of the encoder") if stack == "encoder" else N_("the end of the decoder")
    number, _, part = rest.partition(".")
    layer = (
        N_("encoder layer {layer}", layer=number) if stack == "encoder" else N_("decoder layer {layer}", layer=number)
    )
    if not part:
        return layer
    if part == "self":
        return N_("the self-attention of {layer}", layer=layer)
    if part == "cross":
        return N_("the cross-attention of {layer}", layer=layer)
    if part == "feedforward":
        return N_("the feed-forward of {layer}", layer=layer)
    if part == "pre":
        return N_("the input of {layer}", layer=layer)
    if part in ("mid", "mid_self"):
        return N_("{layer}, after its self-attention", layer=layer)
    if part == "mid_cross":
        return N_("{layer}, after its cross-attention", layer=layer)
    return N_("the output of {layer}", layer=layer)

"""What each box of the lesson "The map" does, in a sentence or two, for the options of the model."""

from vizformer.analysis.costs.model_boxes import Box
from vizformer.config import ModelConfig
from vizformer.messages import ranges
from vizformer.web.words import counts
from vizformer.web.words.i18n import _, translate


def about(box: Box, config: ModelConfig) -> str:
    """What the box does, in a sentence or two; Markdown, nothing that was typed in it."""
    d = config.d_model
    if box.kind == "tokens":
        if box.section == "decoder" and config.architecture == "encoder-decoder":
            return _(
                "What has been written so far: the start mark and the target. From each of these tokens the model "
                "predicts the next."
            )
        return _("The text, cut into pieces that the model knows. Each piece is a number: its row in the vocabulary.")
    if box.kind == "embedding":
        vocab = config.input_vocab_size if box.section == "encoder" else config.vocab_size
        text = _(
            "Looks up each token's row in a table of {vocab:,} rows. From here on a token is a vector of {d} numbers.",
            vocab=vocab,
            d=config.d_embedding,
        )
        if config.embedding_scale != 1:
            return f"{text} " + _("The rows are multiplied by {scale}.", scale=f"{config.embedding_factor:g}")
        scaled = _("The rows are multiplied by √d_model.")
        return f"{text} {scaled}" if config.scaled_embedding and config.factor_of(box.section) != 1 else text
    if box.kind == "positions":
        if config.positions == "learned":
            return _(
                "Adds a vector for each place, learned like the embeddings. Without it the model could not tell "
                "one order of the tokens from another."
            )
        return _(
            "Adds a vector of sine and cosine waves, another for each place. Nothing in it is learned. Without it "
            "an encoder could not tell one order of the tokens from another."
        )
    if box.kind == "attention":
        whom = (
            _("Each position looks at itself and at what is before it")
            if box.section == "decoder"
            else _("Each position looks at all positions, before and after it")
        )
        text = _(
            "{whom}, decides how much of each to take (the weights), and mixes their values by these weights. The "
            "only place where positions of one text meet. Side by side in {heads}, "
            "each with {d_head} numbers.",
            whom=whom,
            heads=counts.heads(config.n_heads),
            d_head=config.d_head,
        )
        return " ".join([text, *map(translate, config.sentences())])
    if box.kind == "feedforward" and config.n_experts is not None:
        return _experts(config)
    if box.kind == "feedforward" and config.residual == "parallel":
        return _(
            "A small network, the same for every position: {d} numbers are spread to {d_ff}, bent, and brought "
            "back. No position sees another here. It reads what the layer was given, as attention does, not what "
            "attention added: the two work side by side.",
            d=d,
            d_ff=config.d_ff,
        )
    if box.kind == "rotation":
        return _rotation(config)
    if box.kind == "mask" and config.sliding_window is not None:
        return _window(config)
    return {
        "segments": _("Adds one of {n} vectors: to which sentence of a pair the token belongs.", n=config.n_segments),
        "projection": _(
            "A matrix brings each vector from the width of the layers, {d} numbers, back to that of the table, {n}, with "
            "whose rows it is compared.",
            n=config.d_embedding,
            d=d,
        )
        if box.section == "prediction"
        else _(
            "A dense layer brings each vector from the width of the tables, {n} numbers, to that of the layers, {d}: a "
            "large vocabulary then takes fewer parameters.",
            n=config.d_embedding,
            d=d,
        ),
        "norm": _(
            "Brings each position's vector to a standard size, number by number, and scales it by what was "
            "learned. Each position for itself."
        ),
        "cross": _(
            "Each position of the decoder asks; the encoder's output answers: keys and values come from the "
            "source. This is the only way from the source to the translation."
        ),
        "mask": _(
            "Blocks every position after the query, so that the next token cannot be read off. It is added to "
            "the scores, before the softmax."
        ),
        "alibi": _(
            "Takes a fixed slope times the distance off every score: what is far away counts less. Another "
            "slope for each head; nothing is learned."
        ),
        "relative": _(
            "Adds a learned number to every score, one for each head and distance (far distances share one). "
            "All layers use one table."
        ),
        "disentangled": _(
            "A learned vector stands for every distance between two tokens, {n} to either side. Each layer makes a key "
            "and a query of it, so that scores also compare contents with distances (DeBERTa). All layers use one table.",
            n=config.disentangled_span,
        ),
        "feedforward": _(
            "A small network, the same for every position: {d} numbers are spread to {d_ff}, bent, and "
            "brought back. No position sees another here.",
            d=d,
            d_ff=config.d_ff,
        ),
        "add": _(
            "Adds what the sublayer found to the vector that came in: the residual stream goes past the sublayer."
        ),
        "add_norm": _(
            "Adds what the sublayer found to the vector that came in, and brings the sum to a standard size."
        ),
        "transform": _(
            "A dense layer, an activation and a norm before the prediction; the bias of the logits is counted here."
        ),
        "unembedding": _(
            "Compares each position's vector with all {vocab:,} rows of the vocabulary: one score, the "
            "logit, for each token that might come.",
            vocab=config.vocab_size,
        ),
        "logit_bias": _("Adds a learned number to the logit of every token, the same for every text."),
        "softmax": _("Turns the logits of a position into probabilities that add up to 1. Nothing in it is learned."),
    }[box.kind]


def _rotation(config: ModelConfig) -> str:
    if config.rope_dims is not None:
        text = _(
            "Turns the first {n} of the {d_head} numbers of queries and keys by an angle that grows with the "
            "position, so that their product depends on how far apart they are. The other numbers stay as they "
            "are. Nothing in it is learned.",
            n=config.rope_dims,
            d_head=config.d_head,
        )
    else:
        text = _(
            "Turns queries and keys by an angle that grows with the position, so that their product depends "
            "on how far apart they are. Nothing in it is learned."
        )
    if config.rope_layers is None:
        return text
    some = _(
        "Only some layers do it (layers: {layers}); the others know no positions.", layers=ranges(config.rope_layers)
    )
    return f"{text} {some}"


def _window(config: ModelConfig) -> str:
    if config.architecture == "encoder-only":
        return _(
            "Blocks what is more than {reach} places away from the query, on both sides: a sliding window (layers: "
            "{layers}). It is added to the scores, before the softmax.",
            reach=f"{(config.sliding_window or 1) - 1:,}",
            layers=ranges(sorted(config.windowed_layers)),
        )
    window, layers = f"{config.sliding_window:,}", config.windowed_layers
    if len(layers) == config.n_decoder_layers:
        return _(
            "Blocks every position after the query, so that the next token cannot be read off, and all but the "
            "latest {window}: a sliding window. It is added to the scores, before the softmax.",
            window=window,
        )
    return _(
        "Blocks every position after the query, so that the next token cannot be read off; where there is a "
        "sliding window (layers: {layers}), also all but the latest {window}. It is added to the scores, before "
        "the softmax.",
        layers=ranges(sorted(layers)),
        window=window,
    )


def _experts(config: ModelConfig) -> str:
    """A mixture of experts, and which layers have it."""
    text = _(
        "{n} small networks, the experts: a router chooses {k} of them for each position. Each of these spreads {d} numbers "
        "to {width}, bends them, and brings them back; what they make is summed by the router's weights.",
        n=config.n_experts,
        k=config.experts_per_token,
        d=config.d_model,
        width=config.expert_width,
    )
    if config.d_shared_expert is not None:
        text += " " + _(
            "One more network, the shared expert ({width} wide), computes for every position.",
            width=config.d_shared_expert,
        )
    if config.expert_layers is not None:
        text += " " + _(
            "So it is in some layers only (layers: {layers}); the others have one network.",
            layers=ranges(config.expert_layers),
        )
    return text

"""What sets a model apart from the plain one, in sentences made of its options."""

from vizformer.config import ModelConfig
from vizformer.messages import N_, Message, ranges


def details(config: ModelConfig) -> list[Message]:
    """What a model has that most of its kind have not."""
    found: list[tuple[bool, Message]] = [
        (
            config.attention_bias != "same" and config.qkv_bias and not config.out_bias,
            N_("attention: queries, keys and values have biases, the output has none"),
        ),
        (
            config.qkv_bias and config.out_bias and not config.bias,
            N_("attention has biases, the feed-forward layers have none"),
        ),
        (config.bias and not config.qkv_bias, N_("the feed-forward layers have biases, attention has none")),
        (
            config.sliding_window is not None and config.architecture == "encoder-only",
            N_(
                "sliding window (layers: {layers}): a query sees only the tokens up to {reach} places away, on both sides",
                layers=ranges(sorted(config.windowed_layers)),
                reach=f"{(config.sliding_window or 1) - 1:,}",
            ),
        ),
        (not config.first_norm, N_("the attention of the first layer has no norm before it")),
        (not config.last_norm, N_("no norm comes after the last layer")),
        (
            config.sliding_window is not None and len(config.windowed_layers) == config.n_decoder_layers,
            N_(
                "sliding window: a query sees only the latest {window} tokens, itself included",
                window=f"{config.sliding_window or 0:,}",
            ),
        ),
        (
            0 < len(config.windowed_layers) < config.n_decoder_layers,
            N_(
                "sliding window (layers: {layers}): a query sees only the latest {window} tokens, itself included; in the "
                "other layers all before it",
                layers=ranges(sorted(config.windowed_layers)),
                window=f"{config.sliding_window or 0:,}",
            ),
        ),
        (config.qk_norm and config.qk_norm_over == "head", N_("queries and keys are normalised")),
        (config.qk_norm and config.qk_norm_over == "all", N_("queries and keys are normalised, all heads together")),
        (
            config.n_experts is not None,
            N_(
                "mixture of experts (layers: {layers}): each token goes through {k} of {n} feed-forward networks of width "
                "{width}",
                layers=ranges(
                    range(config.n_encoder_layers + config.n_decoder_layers)
                    if config.expert_layers is None
                    else config.expert_layers
                ),
                k=config.experts_per_token,
                n=config.n_experts or 0,
                width=f"{config.expert_width:,}",
            ),
        ),
        (
            config.d_shared_expert is not None,
            N_("all tokens go through a shared expert of width {width}", width=f"{config.d_shared_expert or 0:,}"),
        ),
        (
            config.n_experts is not None and config.expert_weights == "probabilities",
            N_("the weights of the chosen experts are not brought to the sum 1"),
        ),
        (
            config.idle_parameters > 0,
            N_("{n} parameters belong to experts that a token does not go through", n=f"{config.idle_parameters:,}"),
        ),
        (config.norm_offset, N_("norms scale by 1 + weight")),
        (config.residual == "parallel", N_("attention and feed-forward read the same input, side by side")),
        (
            config.residual == "none",
            N_("no residual connections: what a sublayer has found takes the place of what it has read"),
        ),
        (config.scaled_embedding, N_("embeddings are multiplied by √d_model")),
        (config.embedding_scale != 1, N_("embeddings are multiplied by {scale}", scale=f"{config.embedding_scale:g}")),
        (
            config.residual_scale != 1,
            N_("what a sublayer has found is multiplied by {scale}", scale=f"{config.residual_scale:g}"),
        ),
        (
            config.rope_dims is not None,
            N_("the first {n} of a head's {d_head} numbers are turned", n=config.rope_dims, d_head=config.d_head),
        ),
        (
            config.rope_layers is not None,
            N_("only these layers know positions (layers: {layers})", layers=ranges(config.rope_layers or ())),
        ),
        (
            config.rope_local_layers is not None,
            N_(
                "rotary positions turn by another base, θ = {theta} (layers: {layers})",
                theta=f"{config.rope_local_theta or 0:,g}",
                layers=ranges(config.rope_local_layers or ()),
            ),
        ),
        (
            config.positions == "rope" and config.rope_scaling != "none",
            N_(
                "rotary positions slowed down for longer texts ({kind}, factor {factor})",
                kind=config.rope_scaling,
                factor=f"{config.rope_factor:g}",
            ),
        ),
        (
            config.positions == "sinusoidal" and config.sinusoids == "halves",
            N_("all sines of the positions before all cosines"),
        ),
        (
            config.decoder_positions_after_norm,
            N_("the decoder's positions are added after the norm of its embeddings"),
        ),
        (config.stack_inputs == "own", N_("encoder and decoder have a position table and an embedding norm each")),
        (
            config.disentangled_furthest is not None,
            N_(
                "far distances share vectors: {n} to either side, up to {furthest} tokens away",
                n=config.disentangled_span,
                furthest=config.disentangled_furthest or 0,
            ),
        ),
        (config.disentangled_norm, N_("the vectors of distances go through a norm")),
        (config.disentangled_shared, N_("the matrices of queries and keys serve the vectors of distances too")),
        (
            config.attention_scale is not None,
            N_("scores are dot products times {scale}, not over √d_head", scale=f"{config.attention_scale or 0:g}"),
        ),
        (
            config.embedding_projection == "tokens",
            N_(
                "rows of the table of token embeddings have {n} numbers; a matrix brings them to the width of the layers "
                "before positions are added",
                n=config.embedding_dim or 0,
            ),
        ),
        (
            config.head == "projection",
            N_("a matrix brings the last row to {n} numbers before the unembedding", n=config.embedding_dim or 0),
        ),
        (
            config.embedding_dim is not None and config.embedding_projection != "tokens",
            N_(
                "rows of the tables of embeddings have {n} numbers; a dense layer brings them to the width of the layers",
                n=config.embedding_dim or 0,
            ),
        ),
        (config.embedding_projection == "sum", N_("the norm of the embeddings comes after that layer")),
        (
            config.logit_scale != 1,
            N_("the last row is multiplied by {scale} before the unembedding", scale=f"{config.logit_scale:.4g}"),
        ),
        (
            config.score_cap is not None,
            N_("scores are bent by a soft cap, {cap} · tanh(score / {cap})", cap=f"{config.score_cap or 0:g}"),
        ),
        (
            config.logit_cap is not None,
            N_("logits are bent by a soft cap, {cap} · tanh(logit / {cap})", cap=f"{config.logit_cap or 0:g}"),
        ),
        (config.logit_bias, N_("logits have a bias for every token")),
        (config.never_pad, N_("the padding is never generated")),
    ]
    return [message for holds, message in found if holds]

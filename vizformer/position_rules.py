"""What the options of positions, sliding windows and distances may be, each and together."""

from vizformer.messages import N_, Message
from vizformer.options import Options

MOST_DISTANCES = 2**20  # to either side; no text that is accepted has as many tokens


def of_positions(c: Options) -> list[Message]:
    """What the options of positions break."""
    problems = []
    if c.positions == "sinusoidal" and c.d_model % 2:
        problems.append(
            N_(
                "d_model={d_model} is odd: sinusoidal positions come in sine-cosine pairs, make it even",
                d_model=c.d_model,
            )
        )
    if c.positions == "rope" and c.n_heads >= 1 and c.rope_dims is None and c.d_head % 2:
        problems.append(
            N_(
                "d_head={d_head} is odd: rotary positions turn pairs of numbers, make d_model / n_heads even",
                d_head=c.d_head,
            )
        )
    if c.rope_dims is not None and c.n_heads >= 1 and (c.rope_dims % 2 or not 2 <= c.rope_dims <= c.d_head):
        problems.append(
            N_(
                "rope_dims={value}: rotary positions turn pairs of numbers, it must be even and from 2 to d_head="
                "{d_head}",
                value=c.rope_dims,
                d_head=c.d_head,
            )
        )
    if not c.rope_low_turns < c.rope_high_turns < float("inf"):
        problems.append(
            N_(
                "rope_high_turns={high}: must be above rope_low_turns={low}",
                high=c.rope_high_turns,
                low=c.rope_low_turns,
            )
        )
    if c.rope_layers is not None:
        if c.positions != "rope" or c.architecture == "encoder-decoder":
            problems.append(N_("rope_layers: only one stack alone with positions='rope' has such layers, leave it out"))
        elif not are_layers(list(c.rope_layers), c.n_encoder_layers + c.n_decoder_layers):
            problems.append(
                N_(
                    "rope_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where all "
                    "turn, and take positions='none' where none does",
                    value=str(list(c.rope_layers)),
                    last=c.n_encoder_layers + c.n_decoder_layers - 1,
                )
            )
    if (c.rope_local_theta is None) is not (c.rope_local_layers is None):
        problems.append(N_("rope_local_theta and rope_local_layers belong together: give both or neither"))
    if c.rope_local_layers is not None:
        if c.positions != "rope" or c.architecture == "encoder-decoder":
            problems.append(
                N_("rope_local_layers: only one stack alone with positions='rope' has such layers, leave it out")
            )
        elif not are_layers(list(c.rope_local_layers), c.n_encoder_layers + c.n_decoder_layers):
            problems.append(
                N_(
                    "rope_local_layers={value}: must be numbers of layers in order, from 0 to {last}",
                    value=str(list(c.rope_local_layers)),
                    last=c.n_encoder_layers + c.n_decoder_layers - 1,
                )
            )
    if c.relative_buckets < 4 or c.relative_buckets % 2:
        problems.append(N_("relative_buckets={value}: must be even and at least 4", value=c.relative_buckets))
    if c.relative_max_distance <= c.relative_buckets // 2:
        problems.append(
            N_(
                "relative_max_distance={value}: must be above half of relative_buckets, {half}",
                value=c.relative_max_distance,
                half=c.relative_buckets // 2,
            )
        )
    return problems


def of_windows(c: Options) -> list[Message]:
    """What the options of sliding windows break."""
    problems = []
    if c.sliding_window is not None and c.architecture == "encoder-decoder":
        problems.append(
            N_("sliding_window={value}: only one stack alone has one, leave it out", value=c.sliding_window)
        )
    if c.sliding_layers is not None:
        layers = list(c.sliding_layers)
        if c.sliding_window is None:
            problems.append(N_("sliding_layers without sliding_window: give both or neither"))
        elif not are_layers(layers, c.n_encoder_layers + c.n_decoder_layers):
            problems.append(
                N_(
                    "sliding_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where "
                    "all have the window",
                    value=str(layers),
                    last=c.n_encoder_layers + c.n_decoder_layers - 1,
                )
            )
    return problems


def of_distances(c: Options) -> list[Message]:
    """What the options of disentangled attention break."""
    if c.disentangled == "none":
        return [
            N_("{name} without disentangled: give both, or leave it out", name=name)
            for name, usual in (
                ("disentangled_furthest", None),
                ("disentangled_norm", False),
                ("disentangled_shared", False),
            )
            if getattr(c, name) != usual
        ]
    problems = []
    if not 2 <= c.disentangled_span <= MOST_DISTANCES:
        problems.append(
            N_(
                "disentangled_span={value}: must be from 2 to {most}",
                value=c.disentangled_span,
                most=MOST_DISTANCES,
            )
        )
    elif c.disentangled_furthest is not None and c.disentangled_furthest <= c.disentangled_span // 2 + 1:
        problems.append(
            N_(
                "disentangled_furthest={value}: must be above half of disentangled_span plus 1, {half}",
                value=c.disentangled_furthest,
                half=c.disentangled_span // 2 + 1,
            )
        )
    if (
        c.architecture != "encoder-only"
        or c.positions not in ("learned", "none")
        or c.qk_norm
        or c.score_cap is not None
        or c.kv_heads != c.n_heads
    ):
        problems.append(
            N_(
                "disentangled={value!r}: only an encoder alone has it, with positions='learned' or 'none', as many "
                "key/value heads as query heads, and neither qk_norm nor score_cap; take 'none'",
                value=c.disentangled,
            )
        )
    return problems


def are_layers(layers: list[int], n: int) -> bool:
    """Whether these are numbers of layers out of `n`, in order, at least one."""
    return bool(layers) and layers == sorted(set(layers)) and 0 <= layers[0] <= layers[-1] < n

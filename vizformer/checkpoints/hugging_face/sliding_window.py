"""The fields that say which layers of a decoder see only the latest keys."""

from collections.abc import Sequence
from typing import Any

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.config import ModelConfig

FULL, SLIDING = "full_attention", "sliding_attention"
MOST_LAYERS = 10_000  # that are listed one by one; no file is believed more
_NAMES = ("sliding_window", "use_sliding_window", "max_window_layers", "layer_types")


def window(fields: Fields, n_layers: int, longest: int) -> Options:
    """The window and the layers that have it; neither where no text up to `longest` is longer than it.

    Query i sees the keys above i - sliding_window.  layer_types lists the layers that have it; where it is not given
    they are those from max_window_layers on (counted from 0), or all.
    use_sliding_window=false: none.  Of the four fields those count that the family has in `transformers`.

    Source: `transformers`, masking_utils.sliding_window_overlay and Qwen2Config; Jiang et al. 2023, "Mistral 7B",
    section 2.
    """
    for name in _NAMES:
        if name in fields.raw:
            _note_if_unread(fields, name)
    used = _said(fields, "use_sliding_window")
    if used not in (None, True, False) or type(used) is int:
        fields.refuse("use_sliding_window", "it must be true or false")
    none = used is False or (used is None and _said(fields, "sliding_window") is None)
    if none:
        if _listed(fields, n_layers):
            fields.refuse(
                "layer_types",
                "it names layers with a sliding window, which sliding_window or use_sliding_window switches off",
            )
        return {}
    size, layers = fields.size("sliding_window"), _windowed_layers(fields, n_layers)
    if not layers or size >= longest:
        return {}
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return {}
    return {"sliding_window": size, "sliding_layers": None if len(layers) == n_layers else tuple(layers)}


def _windowed_layers(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers that layer_types, or what stands for it, gives the window: see `window`."""
    listed = _listed(fields, n_layers)
    return _from(fields, n_layers) if listed is None else listed


def window_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields sliding_window and layer_types of config.json, for families that read both."""
    kinds = [SLIDING if layer in config.windowed_layers else FULL for layer in range(config.n_decoder_layers)]
    return {"sliding_window": config.sliding_window, "layer_types": kinds}


def _listed(fields: Fields, n_layers: int) -> list[int] | None:
    """The layers that layer_types gives the window; None where there is no such list."""
    kinds = _said(fields, "layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or any(kind not in (FULL, SLIDING) for kind in kinds):
        fields.refuse("layer_types", "supported are full_attention and sliding_attention")
        return []
    if len(kinds) != n_layers:
        fields.refuse("layer_types", "it must have an entry for each of the {n} layers", n=n_layers)
        return []
    return [layer for layer, kind in enumerate(kinds) if kind == SLIDING]


def _from(fields: Fields, n_layers: int) -> Sequence[int]:
    first = _said(fields, "max_window_layers")
    if first is None:
        return range(n_layers)
    if type(first) is not int or first < 0:
        fields.refuse("max_window_layers", "it must be a whole number, 0 or above")
        return ()
    return range(first, n_layers)


def _said(fields: Fields, name: str) -> Any:
    """The field, where `transformers` reads it for the family."""
    return fields.value(name) if name in fields.defaults else None


def _note_if_unread(fields: Fields, name: str) -> None:
    """A family reads its own fields of the four; its layers do without the others, whatever a cache makes of them."""
    if fields.value(name) is not None and name not in fields.defaults:
        fields.assume(
            "{field}={value} is ignored: the layers of this family have no such option in `transformers`",
            field=name,
            value=shown(fields.raw[name]),
        )

"""What Gemma 3n and Gemma 4 have in common: layers that share keys and values, and that read their tokens again."""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import LARGEST, Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.messages import N_

SAME: Options = {
    "bias": False,
    "attention_scale": 1.0,
    "qk_norm": True,
    "value_norm": True,
    "norm_order": "sandwich",
    "scaled_embedding": True,
}
AGAIN = {  # of each layer
    "per_layer_input_gate": ["layer_input.W_gate"],
    "per_layer_projection": ["layer_input.W_out"],
    "post_per_layer_input_norm": ["layer_input_norm"],
}
TABLES = {
    "embed_tokens_per_layer.weight": "layer_input_tables.table.weight",
    "per_layer_model_projection.weight": "layer_input_tables.W.weight",
    "per_layer_projection_norm.weight": "layer_input_tables.norm.weight",
}
UNUSED_KEYS = {
    **UNUSED,
    r"layers\.\d+\.self_attn\.[kv]_(proj|norm)\..*": N_(
        "keys and values of a layer that reads those of an earlier one, which `transformers` leaves out too"
    ),
}


def shared_keys(fields: Fields, n_layers: int, sliding: Collection[int]) -> Options:
    """The last num_kv_shared_layers read the keys and values of the last layer of their kind before them."""
    count = fields.value("num_kv_shared_layers")
    if type(count) is not int or not 0 <= count <= LARGEST or n_layers > MOST_LAYERS:
        fields.refuse("num_kv_shared_layers", "it must be a whole number, 0 or above")
        return {}
    if count == 0:
        return {}
    first = n_layers - count
    makes = {kind: [layer for layer in range(first) if (layer in sliding) is kind] for kind in (True, False)}
    if any(not makes[layer in sliding] for layer in range(max(first, 0), n_layers)) or first < 1:
        fields.refuse("num_kv_shared_layers", "before these layers there must be one of each of their kinds")
        return {}
    return {"kv_layers": (*range(first), *(makes[layer in sliding][-1] for layer in range(first, n_layers)))}

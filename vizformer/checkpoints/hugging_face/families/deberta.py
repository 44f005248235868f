"""DeBERTa, v1 to v3: encoders whose scores also compare contents with distances (`vizformer.model.disentangled_attention`).

v1 has a vector for every distance, queries, keys and values in one matrix, and matrices of its own for the distances; v2 and
v3 share far distances among fewer vectors, normalise them, and mostly take W_K and W_Q of the contents for them.  v3 is v2
trained in another way.

Source: He et al. 2021, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention"; He et al. 2023, "DeBERTaV3: Improving
DeBERTa using ELECTRA-Style Pre-Training with Gradient-Disentangled Embedding Sharing"; the weights published with them.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from vizformer.checkpoints.hugging_face import bert_like
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.missing_parameters import Made, zeros
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.vocabularies import WORDPIECE_MARKS, byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_

_OTHERS = {"query_proj": "W_Q", "key_proj": "W_K", "value_proj": "W_V"}
LAYER_V2 = {
    **{theirs: ours for theirs, ours in bert_like.LAYER.items() if not theirs.startswith("attention.self.")},
    **{f"attention.self.{theirs}": [f"self_attention.{ours}"] for theirs, ours in _OTHERS.items()},
}
LAYER_V1 = {theirs: ours for theirs, ours in LAYER_V2.items() if not theirs.startswith("attention.self.")}
NEW_HEAD = "lm_predictions.lm_head"
_HEADS = {  # the head's tensors, as BERT calls them -> as later ones do
    f"{bert_like.HEAD}.transform.dense.": f"{NEW_HEAD}.dense.",
    f"{bert_like.HEAD}.transform.LayerNorm.": f"{NEW_HEAD}.LayerNorm.",
    f"{bert_like.HEAD}.bias": f"{NEW_HEAD}.bias",
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    found, has_head = _options(fields, names)
    fields.only("attention_head_size", None, found["d_model"] // max(found["n_heads"], 1))
    if fields.value("conv_kernel_size") not in (None, 0):
        fields.refuse("conv_kernel_size", "a convolution after the first layer, which is not computed here")
    fields.ignore("conv_act", "conv_groups")  # of that convolution
    terms = {term for term in _terms(fields) if term in ("c2p", "p2c")}
    shared = fields.value("share_att_key")
    if shared not in (None, False, True):
        fields.refuse("share_att_key", "it must be true or false")
    normed = fields.value("norm_rel_ebd")
    if not (normed is None or isinstance(normed, str)):
        fields.refuse("norm_rel_ebd", "it must be a text")
    buckets = fields.value("position_buckets")
    if not (buckets is None or type(buckets) is int):
        fields.refuse("position_buckets", "it must be a whole number")
        buckets = None
    has_norm = "layer_norm" in [part.strip() for part in str(normed).lower().split("|")]
    if not has_norm:
        _without(fields, "norm_rel_ebd", names, "encoder.LayerNorm.")
    found |= _distances(fields, found, names, terms)
    if found["disentangled"] != "none":
        found |= {"disentangled_shared": bool(shared), "disentangled_norm": has_norm}
        if buckets is not None and buckets > 0:
            if found["disentangled_span"] <= buckets // 2 + 1:
                fields.refuse(
                    "max_relative_positions",
                    "it must be above half of position_buckets plus 1, {half}",
                    half=buckets // 2 + 1,
                )
            found |= {"disentangled_furthest": found["disentangled_span"], "disentangled_span": buckets}
    return {**found, **_scale(found, len(terms))}, has_head


def config_v1(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of v1, whose scores are divided for every entry of pos_att_type, whatever it says."""
    found, has_head = _options(fields, names)
    fields.only("talking_head", None, False)
    terms = _terms(fields)
    found |= _distances(fields, found, names, {term for term in terms if term in ("c2p", "p2c")})
    fields.assume("keys have no bias in this family: those of the model here are 0")
    return {**found, **_scale(found, len(terms))}, has_head


def _options(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """What all of them have in common."""
    fields.only("is_decoder", None, False)
    fields.ignore("pooler_dropout", "pooler_hidden_act", "pooler_hidden_size")  # the summary of the first token
    found, has_head = bert_like.options(
        fields, names, bert_like.HEAD, segments=fields.value("type_vocab_size") not in (0, False)
    )
    has_head = has_head or _has(names, NEW_HEAD)
    found |= {
        "positions": "learned" if fields.flag("position_biased_input") else "none",
        "head": "transform" if has_head else "linear",
    }
    width = fields.size("embedding_size", found["d_model"])
    legacy, old, new = fields.flag("legacy"), _has(names, bert_like.HEAD), _has(names, NEW_HEAD)
    if old and new and not legacy:
        fields.refuse("legacy", "the file has a head of either kind; take the tensors of cls.predictions out of it")
    if has_head and ((new and not old) or not (legacy or old)):
        found["tied_unembedding"] = True
        if width != found["d_model"]:
            fields.refuse("embedding_size", "this head compares the last row with embeddings of the same width")
        if legacy:
            fields.assume(
                "the file has the head of the authors' own code, lm_predictions, which `transformers` reads only with "
                "legacy=false (and begins another one with random numbers): it is read as there; the second run of the "
                "last layer that the authors' code makes before it is left out, as there"
            )
    else:
        found["tied_unembedding"] = fields.flag("tie_word_embeddings") or not has_head
    if width != found["d_model"]:
        found = {**bert_like.narrow(fields, found, has_head), "embedding_projection": "sum"}
        fields.assume("the layer that makes the embeddings wider has no bias: that of the model here is 0")
    return found, has_head


def _has(names: Collection[str], head: str) -> bool:
    return any(name.startswith(head) for name in names)


def _terms(fields: Fields) -> list[str]:
    """pos_att_type as a list: older files have a text, "c2p|p2c"."""
    said = fields.value("pos_att_type")
    if said is None:
        return []
    if isinstance(said, str):
        return [part.strip() for part in said.lower().split("|")]
    if isinstance(said, list) and all(isinstance(part, str) for part in said):
        return said
    fields.refuse("pos_att_type", "it must be a list of c2p and p2c, or of none of them")
    return []


def _without(fields: Fields, field: str, names: Collection[str], tensors: str) -> None:
    """Refuses a field that says that the model has no such tensors, where the file has them."""
    if _has(names, tensors):
        fields.refuse(field, "the file has tensors {name}, which nothing would read", name=f"{tensors}*")


def _distances(fields: Fields, found: Options, names: Collection[str], terms: Collection[str]) -> Options:
    """Which terms the scores have, and how far the vectors of distances reach."""
    reach = fields.value("max_relative_positions")
    if type(reach) is not int:
        fields.refuse("max_relative_positions", "it must be a whole number")
        reach = -1
    relative = fields.flag("relative_attention")
    if not relative:
        _without(fields, "relative_attention", names, "encoder.rel_embeddings.")
    if not relative or not terms:
        return {"disentangled": "none"}
    return {
        "disentangled": "both" if len(terms) == 2 else next(iter(terms)),
        "disentangled_span": reach if reach >= 1 else found["max_positions"],
    }


def _scale(found: Options, n_terms: int) -> Options:
    """1 / sqrt(d_head (1 + n)), also where relative_attention=false leaves the n terms out."""
    if not n_terms:
        return {}
    d_head = found["d_model"] // max(found["n_heads"], 1)
    return {"attention_scale": (max(d_head, 1) * (1 + n_terms)) ** -0.5}


def weights(config: ModelConfig, template: dict[str, Sequence[str]] = LAYER_V2) -> list[Part]:
    parts = [*bert_like.embeddings(config), *bert_like.body(config, template), *bert_like.head(config)]
    if config.embedding_dim is not None:
        parts += linear("embeddings.embed_proj", "embedding_projection", bias=False)
    if config.disentangled == "none":
        return parts
    parts.append(Part("encoder.rel_embeddings.weight", ("encoder.distances.vectors.weight",)))
    if config.disentangled_norm:
        parts += linear("encoder.LayerNorm", "encoder.distances.norm")
    return [*parts, *_of_distances(config, "pos_key_proj", "pos_query_proj")]


def weights_v1(config: ModelConfig) -> list[Part]:
    parts = [part for part in weights(config, LAYER_V1) if "attention.self.pos_" not in part.source]
    for index in range(config.n_encoder_layers):
        theirs, ours = f"encoder.layer.{index}.attention.self", f"encoder.layers.{index}.self_attention"
        packed = tuple(f"{ours}.W_{letter}.weight" for letter in "QKV")
        parts.append(Part(f"{theirs}.in_proj.weight", packed, heads=config.n_heads))
        parts += [Part(f"{theirs}.{letter.lower()}_bias", (f"{ours}.W_{letter}.bias",)) for letter in "QV"]
    without = {f"encoder.layer.{index}.attention.self.pos_proj.bias" for index in range(config.n_encoder_layers)}
    return [*parts, *(part for part in _of_distances(config, "pos_proj", "pos_q_proj") if part.source not in without)]


def _of_distances(config: ModelConfig, keys: str, queries: str) -> list[Part]:
    """The matrices of the distances, where the layers have some of their own."""
    if config.disentangled == "none" or config.disentangled_shared:
        return []
    template = {
        **({f"attention.self.{keys}": ["self_attention.relative.W_K"]} if config.has_c2p else {}),
        **({f"attention.self.{queries}": ["self_attention.relative.W_Q"]} if config.has_p2c else {}),
    }
    return layers(template, "encoder.layer.{}", "encoder.layers.{}", config.n_encoder_layers)


def by_names(parts: list[Part], names: Collection[str]) -> list[Part]:
    """The head by its later names, where the file has it by these."""
    if _has(names, bert_like.HEAD) or not _has(names, NEW_HEAD):
        return parts
    return [replace(part, source=_renamed(part.source)) for part in parts]


def _renamed(name: str) -> str:
    for old, new in _HEADS.items():
        name = name.replace(old, new)
    return name


def made(config: ModelConfig) -> Made:
    """What no file has: the bias of the layer after narrow embeddings, and their unembedding where there is no head."""
    found = bert_like.no_unembedding(config)
    if config.embedding_dim is not None:
        found |= zeros(["embedding_projection.bias"], config.d_model)
    return found


def made_v1(config: ModelConfig) -> Made:
    """The same, and the biases of keys."""
    attentions = [f"encoder.layers.{index}.self_attention" for index in range(config.n_encoder_layers)]
    names = [f"{attention}.W_K.bias" for attention in attentions]
    if config.has_c2p:
        names += [f"{attention}.relative.W_K.bias" for attention in attentions]
    return made(config) | zeros(names, config.n_heads * config.d_head)


FAMILY = Family(
    name="DeBERTa v2/v3",
    types=("deberta-v2",),
    prefix="deberta.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=bert_like.ties,
    spare=bert_like.spare,
    by_names=by_names,
    made=made,
    unused={
        **bert_like.UNUSED,
        r"embeddings\.position_embeddings\.weight": N_("this model adds no positions to its embeddings"),
        r"encoder\.(rel_embeddings|LayerNorm)\..*": N_("vectors of distances, which no score of this model reads"),
        r"mask_predictions\..*": N_("the head that tells replaced tokens from others"),
        r"lm_predictions\..*": N_("a second head, beside the one that is read"),
    },
    renamed=bert_like.RENAMED,
    usual=WORDPIECE_MARKS,
)
V1 = relative(
    FAMILY,
    "DeBERTa",
    "deberta",
    config_v1,
    weights=weights_v1,
    tokenizer=partial(byte_level, usual=WORDPIECE_MARKS, around=("[CLS]", "[SEP]")),
    made=made_v1,
)
FAMILIES: tuple[Family, ...] = (FAMILY, V1)

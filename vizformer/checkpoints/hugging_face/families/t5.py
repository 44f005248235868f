"""T5 and T5 v1.1: relative positions in the scores, which are not divided by sqrt(d_head); RMSNorm; no biases.

v1.0 has a plain ReLU layer and a head tied to the embeddings, before which the row is multiplied by d_model^-0.5;
v1.1 and mT5 a gated GELU layer and a head of its own.

Source: Raffel et al. 2019, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer";
Shazeer 2020, "GLU Variants Improve Transformer"; Xue et al. 2020, "mT5"; and the weights published with them.
"""

from collections.abc import Collection

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bart_like import start
from vizformer.checkpoints.hugging_face.family import Family, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.sentencepiece_files import find, sentencepiece
from vizformer.checkpoints.tokenizers.special_tokens import settings
from vizformer.config import ModelConfig
from vizformer.messages import N_

READ = 512  # tokens of a text in its training (3.1.1); the positions themselves set no limit
GAPS = 100  # <extra_id_0>, ...: what stands for a piece of text that was cut out in its training
FEEDFORWARDS = {**{name: name for name in ACTIVATIONS}, **{f"gated-{name}": f"gated-{name}" for name in ACTIVATIONS}}
ATTENTION = {"q": "W_Q", "k": "W_K", "v": "W_V", "o": "W_O"}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model; a file without a decoder's tensors is an encoder alone."""
    vocab_size, width, heads = (fields.size(name) for name in ("vocab_size", "d_model", "num_heads"))
    alone = bool(names) and not any(name.startswith("decoder.") for name in names)
    n_layers, head_dim = fields.size("num_layers"), fields.size("d_kv")
    decoder_layers = _decoder_layers(fields)
    fields.only("is_encoder_decoder", True, *([False] if alone else []))
    scaled = fields.value("scale_decoder_outputs") if fields.kind == "t5" else False
    if "scale_decoder_outputs" not in fields.raw and scaled is None:  # older files say it with another field
        scaled = fields.raw.get("tie_word_embeddings") is not False
    fields.ignore("tie_word_embeddings")
    has_head = not alone and ("lm_head.weight" in names or says_head(fields.architecture))
    pad = fields.token("pad_token_id", vocab_size)
    fields.assume(
        "texts up to {limit} tokens are accepted, the length of its training; relative positions set no limit",
        limit=fields.size("n_positions", otherwise=READ),
    )
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        head_dim=None if head_dim * heads == width else head_dim,
        d_ff=fields.size("d_ff"),
        n_encoder_layers=n_layers,
        n_decoder_layers=0 if alone else decoder_layers,
        max_positions=fields.size("n_positions", otherwise=READ),
        positions="relative",
        relative_buckets=fields.size("relative_attention_num_buckets"),
        relative_max_distance=fields.size("relative_attention_max_distance"),
        attention_scale=1.0,
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        bias=False,
        **_feedforward(fields),
        tied_unembedding=bool(scaled) or "lm_head.weight" not in names,
        logit_scale=width**-0.5 if scaled else 1.0,
        pad_id=pad,
        eos_id=fields.token("eos_token_id", vocab_size),
        bos_id=fields.token("bos_token_id", vocab_size),
        decoder_start_id=None if alone else start(fields, vocab_size, pad, N_("the padding")),
        forced_bos_id=None if alone else fields.token("forced_bos_token_id", vocab_size, generated=True),
    ), has_head


def _decoder_layers(fields: Fields) -> int:
    """The number of decoder layers; without num_decoder_layers it is num_layers, whatever num_hidden_layers says.

    Source: `transformers`, T5Config.__post_init__, which looks before it follows the second names of fields.
    """
    same = fields.written.get("num_layers", fields.defaults["num_layers"])
    return fields.size("num_decoder_layers", otherwise=same if type(same) is int else 1)


def _feedforward(fields: Fields) -> Options:
    """ "gated-gelu" has long meant the approximated GELU; the two fields that repeat it must agree."""
    said = fields.choice("feed_forward_proj", FEEDFORWARDS)
    name = said.removeprefix("gated-")
    meant = "gelu_new" if said == "gated-gelu" else name
    fields.only("is_gated_act", None, name != said)
    fields.only("dense_act_fn", None, meant)
    return {"feedforward": "plain" if name == said else "gated", "activation": ACTIVATIONS[meant]}


def weights(config: ModelConfig) -> list[Part]:
    parts = [Part("shared.weight", ("embedding.weight",))]
    for stack, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        if not n_layers:
            continue
        parts += layers(_layer(config, stack), f"{stack}.block.{{}}", f"{stack}.layers.{{}}", n_layers, bias=False)
        parts += linear(f"{stack}.final_layer_norm", f"{stack}.final_norm", bias=False)
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        parts.append(Part(table, (f"{stack}.relative_bias.weight",)))
    return parts if config.tied_unembedding else [*parts, *linear("lm_head", "unembedding", bias=False)]


def _layer(config: ModelConfig, stack: str) -> dict[str, list[str]]:
    """The sublayers have numbers: self-attention, cross-attention in a decoder, feed-forward."""
    kinds = {"SelfAttention": "self_attention"} | ({"EncDecAttention": "cross_attention"} if stack == "decoder" else {})
    found: dict[str, list[str]] = {}
    for number, (theirs, ours) in enumerate(kinds.items()):
        found |= {f"layer.{number}.{theirs}.{name}": [f"{ours}.{matrix}"] for name, matrix in ATTENTION.items()}
        found[f"layer.{number}.layer_norm"] = [f"{ours.removesuffix('attention')}norm"]
    last = f"layer.{len(kinds)}"
    matrices = {"wi": "W_in"} if config.feedforward == "plain" else {"wi_0": "W_gate", "wi_1": "W_in"}
    found |= {f"{last}.DenseReluDense.{t}": [f"feedforward.{m}"] for t, m in {**matrices, "wo": "W_out"}.items()}
    return {**found, f"{last}.layer_norm": ["feedforward_norm"]}


def ties(config: ModelConfig) -> dict[str, str]:
    again = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    return dict.fromkeys([*again, "lm_head.weight"] if config.tied_unembedding else again, "shared.weight")


def tokenizer(folder: Folder) -> Backend:
    """spiece.model, and behind its pieces the marks of gaps, the last one first."""
    name = find(folder)
    if name is None:
        no_tokenizer(folder, "tokenizer.json or spiece.model")
    backend, gaps = sentencepiece(folder, name, ended=True), settings(folder).get("extra_ids", GAPS)
    marks = [f"<extra_id_{number}>" for number in reversed(range(gaps if type(gaps) is int and 0 < gaps < 1000 else 0))]
    missing = [mark for mark in marks if backend.token_to_id(mark) is None]
    backend.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in missing])
    return backend


FAMILIES: tuple[Family, ...] = (
    Family(
        name="T5",
        types=("t5", "mt5"),
        prefix="transformer.",
        head="lm_head.",
        config=config,
        weights=weights,
        tokenizer=tokenizer,
        ties=ties,
        unused={
            r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight": N_(
                "a table that T5's code does not use: its cross-attention has no position bias"
            ),
            r"(classification_head|classifier|qa_outputs)\..*": N_("the head of another task"),
        },
        usual={"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
    ),
)

"""The fields of somebody else's config.json: each one is read, held to what is supported, or known to be harmless."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, LiteralString

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.messages import N_, Message, as_message, messages_of
from vizformer.word_tables import words_of

# What no forward of an evaluated model depends on: names, training, generation, other heads.
_HARMLESS = """
_attn_implementation _attn_implementation_autoset _name_or_path _num_labels _sliding_window_pattern activation_dropout
architectures attention_dropout attention_probs_dropout_prob attn_implementation attn_pdrop auto_map bad_words_ids
cache_implementation begin_suppress_tokens chunk_size_feed_forward classif_dropout classifier_dropout
classifier_dropout_prob classifier_pooling cls_token_id decoder_layerdrop deterministic_flash_attn
decoder_start_token_id directionality diversity_penalty do_sample dropout dropout_rate dtype early_stopping emb_pdrop
embd_pdrop embed_dropout embedding_dropout encoder_layerdrop encoder_no_repeat_ngram_size
exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing
hidden_dropout hidden_dropout_prob id2label init_std initializer_cutoff_factor initializer_factor initializer_range
is_composition keys_to_ignore_at_inference label2id layerdrop length_penalty max_length min_length mlp_dropout
model_max_length model_type no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences
output_attentions output_hidden_states output_past output_router_logits output_scores pooler_fc_size
pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix reference_compile
repad_logits_with_grad pretraining_tp problem_type qa_dropout remove_invalid_values reorder_and_upcast_attn
repetition_penalty resid_dropout resid_pdrop residual_dropout return_dict return_dict_in_generate router_aux_loss_coef
router_jitter_noise sep_token_id seq_classif_dropout sinusoidal_pos_embds sparse_pred_ignore_index sparse_prediction
summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type summary_use_proj
suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class top_k top_p torch_dtype torchscript
transformers.js_config transformers_version typical_p unsloth_fixed unsloth_version use_bfloat16 use_cache xla_device
"""
HARMLESS = frozenset(_HARMLESS.split())
# Everything else that a family may have but none here does, with the only values that change nothing.
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "quantization_config": (None,),
    "pruned_heads": (None, {}),
    "is_encoder_decoder": (None, False),
    "is_decoder": (None, False),
    "add_cross_attention": (None, False),
    "cross_attention_hidden_size": (None,),
    "position_embedding_type": (None, "absolute"),
    "embedding_size": (None,),
    "adapters": (None,),
    "peft_config": (None,),
    "is_causal": (True,),
    "per_layer_config": (None, {}),
    "attention_chunk_size": (None,),
    "kv_sharing_modes": (None,),
    "transformers_weights": (None,),
    "configuration_files": ([], ["config.json"]),
    "fusion_config": (None, {}),
    **dict.fromkeys(("decoder", "generator", "text_config", "text_encoder"), (None,)),  # a model inside another
}
LARGEST = 2**31 - 1
# model_type -> what `transformers` takes where one of the fields that are read is absent ("defaults"), and its second names
# of fields ("aliases").  Written by `python -m recipes.config_defaults`.
KNOWN: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
    Path(__file__).with_name("config_defaults.json").read_text(encoding="utf-8")
)


class Fields:
    """Reads fields and collects what is wrong and what had to be assumed; `finish` covers those nobody read.

    Args:
        raw: the JSON object.
        defaults: what `transformers` takes where a field is absent.
        aliases: second names of fields (`attribute_map` in `transformers`). Where a file has both names, the second one
            counts, as there: it is set after the other.

    Attributes:
        written: the JSON object as it is.
        raw: the same by first names.
        refused: the fields whose values our own Transformer does not compute, and these values; `problems` says why.
        assumptions: what had to be assumed.
    """

    def __init__(
        self, raw: Mapping[str, Any], defaults: Mapping[str, Any], aliases: Mapping[str, str] | None = None
    ) -> None:
        self.written, self.defaults = raw, defaults
        self.raw = dict(raw)
        self.problems: list[Message] = []
        self.refused: dict[str, Any] = {}
        self.assumptions: list[Message] = []
        self._read: set[str] = set()
        self._called: dict[str, str] = {}  # first name -> the name in the file, where it is the second one
        for alias, name in (aliases or {}).items():
            if alias in raw:
                self.raw[name] = self.raw.pop(alias)
                self._rename(alias, name)

    def _rename(self, alias: str, name: str) -> None:
        if name not in self.written or self.written[name] != self.written[alias]:
            self._called[name] = alias
        if name in self.written:
            self.follow(alias, name)

    def follow(self, second: str, first: str) -> None:
        """Notes that of two names of one thing the second one counts, where the file has both with two values."""
        if first in self.written and self.written[second] != self.written[first]:
            self.assume(
                "{first}={value} and {second}={other} are two names of one field: VizFormer takes "
                "{second}, as `transformers` does",
                first=first,
                value=shown(self.written[first]),
                second=second,
                other=shown(self.written[second]),
            )

    @property
    def kind(self) -> str:
        """model_type, by which `transformers` chooses its code."""
        return str(self.raw.get("model_type"))

    @property
    def architecture(self) -> str:
        """The class of `transformers` that wrote the file, e.g. "GPT2LMHeadModel"; empty if it does not say."""
        names = self.raw.get("architectures")
        return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""

    def value(self, name: str) -> Any:
        """The field as it is, or the family's default, which is then an assumption."""
        first_time = name not in self._read
        self._read.add(name)
        if name in self.raw:
            return self.raw[name]
        default = self.defaults.get(name)
        if first_time and default is not None:
            self.assume(
                "config.json does not say {field}: taken as {value}, as `transformers` does",
                field=name,
                value=shown(default),
            )
        return default

    def ignore(self, *names: str) -> None:
        """Fields that a family has and no forward of an evaluated model depends on."""
        self._read.update(names)

    def size(self, name: str, otherwise: int | None = None) -> int:
        """A whole number above 0, also as 1e6; a problem (and 1) where it is none. null means `otherwise` where given."""
        value = whole(self.value(name))
        if value is None and otherwise is not None:
            return otherwise
        if type(value) is int and 1 <= value <= LARGEST:
            return value
        self.refuse(name, "it must be a whole number from 1 to {limit}", limit=LARGEST)
        return 1

    def number(self, name: str) -> float:
        """A number above 0 and below 1e30; a problem (and 0.5) where it is none."""
        value = self.value(name)
        if type(value) in (int, float) and 0 < value < 1e30:
            return float(value)
        self.refuse(name, "it must be a number above 0")
        return 0.5

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if isinstance(value, bool):
            return value
        self.refuse(name, "it must be true or false")
        return False

    def choice(self, name: str, options: Mapping[str, str]) -> str:
        """Our name for the value of a field, by the table `options`; other values are refused."""
        value = self.value(name)
        if isinstance(value, str) and value in options:
            return options[value]
        self.refuse(name, "supported are {options}", options=", ".join(options))
        return next(iter(options.values()))

    def token(self, name: str, vocab_size: int, *, generated: bool = False) -> int | None:
        """A token id, or None where there is none (some files say -1); of several the first.

        One outside the vocabulary is none either, as marks of a larger vocabulary often stay in a file when somebody
        takes a smaller one; but for one that is `generated`, put into every output, which is a problem.
        """
        value = self.value(name)
        if isinstance(value, list) and value:
            self.assume("{field} lists several tokens, {value}: the first one is used", field=name, value=shown(value))
            value = value[0]
        if value is None or (type(value) is int and value == -1):
            return None
        if type(value) is int and 0 <= value < vocab_size:
            return value
        if type(value) is not int or (generated and name in self.raw):
            self.refuse(name, "it must be a token id, 0 to {last}", last=vocab_size - 1)
        elif name in self.raw:  # (a default of `transformers` is that of a larger vocabulary)
            self.assume(
                "{field}={value} lies outside the vocabulary, 0 to {last}: the model is opened without this mark",
                field=name,
                value=shown(value),
                last=vocab_size - 1,
            )
        return None

    def marks(self, vocab_size: int) -> dict[str, int | None]:
        """The marks that every family may have: what begins a text, what ends it, and the padding."""
        return {f"{mark}_id": self.token(f"{mark}_token_id", vocab_size) for mark in ("bos", "eos", "pad")}

    def only(self, name: str, *supported: Any) -> None:
        """Refuses every value but `supported`."""
        if self.value(name) not in supported:
            self.refuse(name, "supported is {options}", options=" / ".join(map(shown, supported)))

    def refuse(self, name: str, rule: Message | LiteralString, /, **values: object) -> None:
        """`rule` is a message, or the text of one, as an error of ours takes it."""
        self.refused[name] = self.raw.get(name, self.defaults.get(name))
        value, rule = shown(self.refused[name]), as_message(rule, values)
        self.problems.append(N_("{field}={value}: {rule}", field=self._called.get(name, name), value=value, rule=rule))

    def assume(self, said: Message | LiteralString, /, **values: object) -> None:
        if (assumption := as_message(said, values)) not in self.assumptions:
            self.assumptions.append(assumption)

    def finish(self) -> None:
        """Holds what every family has in common to its neutral values, and lists the fields that nobody knows."""
        if self.raw.get("auto_map"):
            self.assume(
                "config.json names code of its own (auto_map={value}): VizFormer never runs it, and "
                "computes what `transformers` computes for {kind}",
                value=shown(self.raw["auto_map"]),
                kind=shown(self.kind),
            )
        for name, neutral in NEUTRAL.items():
            if name in self.raw and name not in self._read and self.raw[name] not in neutral:
                self.refuse(name, _WHY.get(name, _WHY["otherwise"]))
        for name in unknown_fields(self.raw, self._read):
            if self.raw[name] is None:  # says nothing
                continue
            self.assume(
                "config.json has a field {field}={value} that `transformers` does not read for this family: "
                "it is ignored",
                field=shown(name),
                value=shown(self.raw[name]),
            )


def whole(value: Any) -> Any:
    """A number such as 1e6, which JSON reads as one with a fraction, as the whole number that it is."""
    return int(value) if type(value) is float and value.is_integer() and abs(value) <= LARGEST else value


def fields_of(raw: Mapping[str, Any]) -> Fields:
    """The fields of a config.json whose model_type is known."""
    known = KNOWN[str(raw["model_type"])]
    return Fields(raw, known["defaults"], known["aliases"])


def unknown_fields(raw: Mapping[str, Any], read: Collection[str]) -> list[str]:
    return sorted(name for name in raw if name not in read and name not in HARMLESS and name not in NEUTRAL)


_WHY = messages_of(words_of(__file__))

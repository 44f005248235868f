"""BART and what is built like it: an encoder-decoder, or a decoder alone, whose tensors have the names of fairseq's.

Source: Lewis et al. 2019, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
and Comprehension", and what stands above each row, with the weights published with it.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from tokenizers import AddedToken, models, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.hugging_face.bart_like import LIKE, both_stacks, start, tensors, waves
from vizformer.checkpoints.hugging_face.family import WAVES, Family, Made, Options, fairseq_waves, only, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers import sentencepiece_files as spm
from vizformer.checkpoints.tokenizers.refusals import guarded, no_tokenizer, only_tokenizer_json, raise_refusal
from vizformer.checkpoints.tokenizers.special_tokens import bounded, settings, token_text
from vizformer.checkpoints.tokenizers.vocabularies import ROBERTA_MARKS, Vocabularies, byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message

FIRST = 2  # row of BART's position table at which positions begin
LONGEST = 32_768  # rows of M2M-100's table of waves
USUAL_OF_MARIAN = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

# Marian's files: source.spm and target.spm split texts and translations into pieces, vocab.json has the ids of both.
#
# With separate vocabularies (separate_vocabs of tokenizer_config.json) vocab.json has those of the source alone, and
# target_vocab.json the target's.  Otherwise:
#
# Each becomes a tokenizer over all of vocab.json, so that an id means the same in both; of what is not among its own
# pieces only what consists of characters that these do not have is taken. `transformers` looks up all such
# characters in a row as one piece; where that is unknown, it may be known here in parts.
#
# Source: the files published with OPUS-MT (Tiedemann & Thottingal 2020).
IDS, SOURCE, TARGET, TARGET_IDS = "vocab.json", "source.spm", "target.spm", "target_vocab.json"
UNKNOWN = 10.0  # how far below the lowest piece SentencePiece puts an unknown character
NEVER = 100_000.0  # and what is not to be taken: the pieces of a text do not add up to as much


def paired(folder: Folder, usual: dict[str, str]) -> Vocabularies:
    """The two tokenizers; `usual` names the special tokens where no file does."""
    said = settings(folder)
    apart = said.get("separate_vocabs") is True
    if not all(folder.has(name) for name in (IDS, SOURCE, TARGET, *([TARGET_IDS] if apart else []))):
        no_tokenizer(
            folder,
            f"{IDS}, {SOURCE}, {TARGET_IDS} and {TARGET}"
            if apart
            else f"tokenizer.json, or {IDS}, {SOURCE} and {TARGET}",
        )
    marks = {role: token_text(said.get(role)) or token for role, token in usual.items()}
    notes: list[Message] = []
    made = []
    for name, of in ((SOURCE, IDS), (TARGET, TARGET_IDS if apart else IDS)):
        ids = _ids(folder, of, marks)
        pieces = spm.read(folder, name)
        if pieces.kind != "unigram":
            raise_refusal(name, f"a vocabulary of the kind {pieces.kind}; supported here is unigram")
        own = {pieces.pieces[id].text: pieces.pieces[id].score for id in pieces.ids(spm.NORMAL)}
        if unknown := own.keys() - ids.keys():
            notes.append(
                N_(
                    "{n} of the pieces of {file} are not in {ids}: words that need them are split into other pieces",
                    n=len(unknown),
                    file=name,
                    ids=of,
                )
            )
        made.append(guarded(name, partial(_build, pieces, own, ids, marks)))
    return Vocabularies(made[0], made[1], tuple(notes), apart)


def _ids(folder: Folder, name: str, marks: dict[str, str]) -> dict[str, int]:
    ids = folder.object(name)
    bounded(ids, name)
    if not all(type(id) is int for id in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise_refusal(name, "its ids are not 0, 1, 2, ...")
    if absent := [token for token in marks.values() if token not in ids]:
        raise_refusal(name, f"it lacks {', '.join(map(shown, absent))}")
    return ids


def _build(pieces: spm.SentencePiece, own: dict[str, float], ids: dict[str, int], marks: dict[str, str]) -> Backend:
    lowest = min(own.values())

    def score(token: str) -> float:
        return own.get(token, lowest - (NEVER if any(character in own for character in token) else UNKNOWN))

    vocabulary = [(token, score(token)) for token in sorted(ids, key=ids.__getitem__)]
    backend = Backend(models.Unigram(vocabulary, unk_id=ids[marks["unk_token"]], byte_fallback=False))
    spm.dress(backend, pieces)
    backend.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in marks.values()])
    languages = [token for token in ids if token.startswith(">>") and token.endswith("<<")]
    backend.add_tokens([AddedToken(token, normalized=False, special=False) for token in languages])
    end = marks["eos_token"]
    backend.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, ids[end])])
    return backend


def _bart(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """Opens as a decoder alone too, as the class ForCausalLM saves it."""
    alone = fields.architecture.endswith("ForCausalLM")
    options, has_head = both_stacks(fields, names, pre_norm=fields.kind == "mbart", alone=alone)
    fields.only("normalize_embedding", None, True)
    fields.only("static_position_embeddings", None, False)
    fields.only("extra_pos_embeddings", None, FIRST)
    options |= {"positions": "learned", "embedding_norm": True}
    if alone:
        return options, has_head
    return {**options, "stack_inputs": "own", **_start("eos_id", N_("the end mark"))(fields, options)}, has_head


def _start(usual: str, called: Message) -> Callable[[Fields, Options], Options]:
    """Reads what the decoder begins with: `usual` is the option whose token it is where no file says it."""
    return lambda fields, options: {"decoder_start_id": start(fields, options["vocab_size"], options[usual], called)}


def _old(**supported: object) -> Callable[[Fields, Options], Options]:
    """Fields written by old versions, which say what the family is: no other values than these are supported."""

    def read(fields: Fields, options: Options) -> Options:
        for name, value in supported.items():
            fields.only(name, None, value)
        fields.ignore("extra_pos_embeddings")  # no forward reads it
        return {}

    return read


def _m2m(fields: Fields, options: Options) -> Options:
    if options["pad_id"] is None:
        fields.refuse("pad_token_id", "positions are counted from the row after the padding's: it must be a token id")
    fields.assume(WAVES)
    return {"max_positions": min(options["max_positions"], LONGEST), "positions": "learned"}


def _marian(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """Most have one vocabulary for both languages; where share_encoder_decoder_embeddings=false, each has its own."""
    shared = fields.flag("share_encoder_decoder_embeddings")
    options, has_head = both_stacks(fields, names, own_vocabularies=not shared)
    fields.only("normalize_embedding", None, False)
    fields.only("static_position_embeddings", None, True)
    if shared:
        fields.only("decoder_vocab_size", None, options["vocab_size"])
    return {**options, "never_pad": _never_pad(fields, options["pad_id"])}, has_head


def _never_pad(fields: Fields, pad: int | None) -> bool:
    """Whether bad_words_ids bans the padding token, as Marian's files do since its logit is sometimes the highest."""
    banned = fields.value("bad_words_ids")
    if banned in (None, []) or pad is None:
        return False
    if banned != [[pad]]:
        fields.assume("bad_words_ids={value}: generation here leaves out the padding at most", value=shown(banned))
    return isinstance(banned, list) and [pad] in banned


def weights(config: ModelConfig) -> list[Part]:
    stacks = {"encoder": "", "decoder": "decoder_"} if config.n_encoder_layers else {"decoder": ""}
    parts = tensors(config)
    for stack, own in stacks.items():
        parts += [
            Part(f"{stack}.embed_positions.weight", (f"{own}position_embedding.weight",), skip=FIRST),
            *linear(f"{stack}.layernorm_embedding", f"{own}embedding_norm"),
            *(linear(f"{stack}.layer_norm", f"{stack}.final_norm") if config.final_norm else []),
        ]
    return parts


def _waves_of_m2m(config: ModelConfig) -> Made:
    pad = config.pad_id or 0
    return {"position_embedding.weight": partial(fairseq_waves, config.max_positions, config.d_model, pad, pad + 1)}


WAVES_AS_IN_2017: Options = {"positions": "sinusoidal", "sinusoids": "halves"}
OWN_TABLES: Options = {"positions": "learned", "stack_inputs": "own"}
PRE_NORM = partial(both_stacks, pre_norm=True)
BYTES = partial(byte_level, usual=ROBERTA_MARKS, around=("<s>", "</s>"))
BART = relative(LIKE, "BART", "bart", _bart, weights=weights, tokenizer=BYTES, usual=ROBERTA_MARKS)
FAMILIES: tuple[Family, ...] = (
    BART,
    # The norms in front of the sublayers, and one more behind the last layer; tokenizer.json says the language.  Liu et al.
    # 2020, "Multilingual Denoising Pre-training for Neural Machine Translation".
    replace(BART, types=("mbart",), tokenizer=only_tokenizer_json),
    # Ahmad et al. 2021, "Unified Pre-training for Program Understanding and Generation".
    relative(BART, "PLBART", "plbart", tokenizer=only_tokenizer_json),
    # What prompts add to keys and values is not supported.  Tang et al. 2022, "MVP: Multi-task Supervised Pre-training for
    # Natural Language Generation".
    relative(BART, "MVP", "mvp", _bart, only("prompt_length", "prompt_mid_dim", use_prompt=False)),
    # The Transformer of 2017, as the OPUS-MT translators have it.  Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine
    # Translation in C++"; Tiedemann & Thottingal 2020, "OPUS-MT".
    relative(
        LIKE,
        "Marian",
        "marian",
        _marian,
        WAVES_AS_IN_2017,
        _start("pad_id", N_("the padding")),
        tokenizer=partial(paired, usual=USUAL_OF_MARIAN),
        computed=waves,
        usual=USUAL_OF_MARIAN,
    ),
    # The same with the norms in front of the sublayers, and one more at the end of each stack.  Zhang et al. 2019, "PEGASUS:
    # Pre-training with Extracted Gap-sentences for Abstractive Summarization".
    relative(
        LIKE,
        "Pegasus",
        "pegasus",
        PRE_NORM,
        _old(normalize_embedding=False, static_position_embeddings=True),
        WAVES_AS_IN_2017,
        _start("pad_id", N_("the padding")),
        computed=waves,
    ),
    # Also NLLB: fixed waves counted from the padding's row.  Fan et al. 2020, "Beyond English-Centric Multilingual Machine
    # Translation"; NLLB Team 2022, "No Language Left Behind".
    relative(LIKE, "M2M-100", "m2m_100", PRE_NORM, _m2m, _start("eos_id", N_("the end mark")), made=_waves_of_m2m),
    # No norm after the embeddings.  Roller et al. 2020, "Recipes for Building an Open-Domain Chatbot".
    relative(
        LIKE,
        "Blenderbot",
        "blenderbot",
        PRE_NORM,
        _old(normalize_embedding=False, static_position_embeddings=False, layernorm_variant="prelayernorm"),
        OWN_TABLES,
        _start("bos_id", N_("the start mark")),
    ),
)

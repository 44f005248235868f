"""Vocabulary files without a tokenizer.json, as older repositories have them, against `transformers`."""

import json
import tracemalloc
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

pytest.importorskip("transformers")

from tests.checkpoints import folders
from vizformer.checkpoints.files.untrusted_folder import JSON_LIMIT, Folder
from vizformer.checkpoints.hugging_face.families import FAMILIES
from vizformer.checkpoints.hugging_face.family import Family
from vizformer.checkpoints.tokenizers.classes import by_class, by_class_alone
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies, tried
from vizformer.errors import CheckpointError, TokenizerError
from vizformer.text import Tokenizer

TEXTS = [
    *folders.TEXTS,
    "",
    " ",
    "   leading and trailing   ",
    "tabs\tand\r\nline ends\n\n\n  x",
    "I'm, you'RE, we've; they'll 'd DON'T",
    "1234567 3.14159 1,000,000 ²½ 一二三 ٣",
    "def f(x):\n    return x**2  # done\n\n\nif __name__ == '__main__':\n\tf(1)",
    "你好，世界！我有两只猫。「引号」 ｆｕｌｌ　ｗｉｄｔｈ",
    "e\u0301 \u00e9 n\u0303 \uac00 \u1100\u1161 \u212b",
    "🐱🏽 👩‍👩‍👧 🇨🇳 \u200b\u00ad zero",
    "Ünïcödé STRASSE ß İ ΑΣ привет नमस्ते ภาษาไทย العربية",
    "https://example.org/a?b=c&d=%20 x@y.z #tag $5.00 ... --- ?!?!",
    "a\u2028b\u0085c\u00a0d\u3000e",
    "<|endoftext|> <|endoftext|>x <|im_start|>user\nhi<|im_end|> [MASK] <mask>  <s></s>",
]
BY_NAME = {family.name: family for family in reversed(FAMILIES)}  # the first of a name


def read(folder: Path, family: str) -> Tokenizer:
    found = by_class(Folder(folder), BY_NAME[family].tokenizer if family else by_class_alone)
    return Tokenizer(found.texts if isinstance(found, Vocabularies) else found)


def same(folder: Path, family: str, kind: str, **options: Any) -> Tokenizer:
    """Every text gives the ids of `transformers`' class, and the ids the same text back."""
    import transformers

    said = deepcopy(options)  # (it takes things out of them, and tests share them)
    ours, theirs = read(folder, family), getattr(transformers, kind).from_pretrained(folder, **said)
    for text in TEXTS:
        ids = [token.id for token in ours.encode(text)]
        assert ids == theirs(text)["input_ids"], text
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True), text
    return ours


def byte_level(folder: Path, *, added: dict[str, dict[str, Any]] | None = None, **said: Any) -> int:
    """vocab.json and merges.txt learned from a few texts, and a tokenizer_config.json; the number of their tokens."""
    folders.write_byte_level(folder, {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4})
    size = folders.vocabulary(folder)
    decoder = {
        str(size + number): {
            "content": text,
            "lstrip": False,
            "rstrip": False,
            "single_word": False,
            "normalized": False,
            "special": True,
            **flags,
        }
        for number, (text, flags) in enumerate((added or {}).items())
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({**said, "added_tokens_decoder": decoder}))
    return size


def test_qwen_by_the_words_of_its_tokenizer_config(tmp_path: Path) -> None:
    """As Qwen2's repositories were at first: marks behind the vocabulary, named in one file only."""
    marks = {"<|endoftext|>": {}, "<|im_start|>": {}, "<|im_end|>": {}, "<tool_call>": {"special": False}}
    size = byte_level(
        tmp_path, added=marks, tokenizer_class="Qwen2Tokenizer", eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    for family in ("Qwen2", "Qwen3", ""):
        ours = same(tmp_path, family, "Qwen2Tokenizer")
        assert [ours.id_of(mark) for mark in marks] == [size, size + 1, size + 2, size + 3]
        assert [token.id for token in ours.encode("<|im_end|>x<tool_call>")][::2] == [size + 2, size + 3]


def test_qwen_cuts_words_its_own_way(tmp_path: Path) -> None:
    """Every digit is a word; GPT-2 takes numbers whole, and leaves accents apart."""
    byte_level(tmp_path)
    merges = (tmp_path / "merges.txt").read_text()
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    (tmp_path / "merges.txt").write_text(merges + "1 2\n")
    (tmp_path / "vocab.json").write_text(json.dumps({**vocabulary, "12": len(vocabulary)}))
    qwen, gpt2 = read(tmp_path, "Qwen2"), read(tmp_path, "GPT-2")
    assert [token.text for token in qwen.encode("12")] == ["1", "2"]
    assert [token.text for token in gpt2.encode("12")] == ["12"]
    assert [t.id for t in qwen.encode("e\u0301")] == [t.id for t in qwen.encode("\u00e9")]
    assert [t.id for t in gpt2.encode("e\u0301")] != [t.id for t in gpt2.encode("\u00e9")]


# As version 4 wrote it, and as the published tokenizer.json have it: a space before the mask belongs to it.
MASK = {
    "mask_token": {
        "__type": "AddedToken",
        "content": "<mask>",
        "lstrip": True,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }
}


@pytest.mark.parametrize(
    ("family", "kind", "said"),
    [
        ("GPT-2", "GPT2Tokenizer", {}),
        ("GPT-2", "GPT2Tokenizer", {"add_prefix_space": True}),
        ("OPT", "GPT2Tokenizer", {"add_bos_token": True, "bos_token": "</s>", "unk_token": "</s>"}),
        ("", "GPTNeoXTokenizer", {}),
        ("", "GPT2Tokenizer", {}),
        ("RoBERTa", "RobertaTokenizer", MASK),
        ("RoBERTa", "RobertaTokenizer", {"add_prefix_space": True, **MASK}),
        ("BART", "BartTokenizer", MASK),
    ],
    ids=str,
)
def test_byte_level_vocabularies(family: str, kind: str, said: dict[str, Any], tmp_path: Path) -> None:
    mark = {"<|endoftext|>": {}, "<|padding|>": {}, "      ": {"special": False, "normalized": True}}
    size = byte_level(tmp_path, added=mark, tokenizer_class=kind, **said)
    ours = same(tmp_path, family, kind)
    assert ours.id_of("<|endoftext|>") == size


@pytest.mark.parametrize(
    "said",
    [{}, {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True}, {"tokenize_chinese_chars": False}],
    ids=str,
)
@pytest.mark.parametrize("family", ["BERT", "DistilBERT", "GPT-2", "BART", "RoBERTa"])
def test_a_vocabulary_of_bert_in_any_family(family: str, said: dict[str, Any], tmp_path: Path) -> None:
    """Chinese GPT-2, Chinese BART and Korean RoBERTa come with BERT's vocab.txt, and say so."""
    folders.write_wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **said}))
    ours = same(tmp_path, family, "BertTokenizer", **said)
    assert ours.encode("x")[0].id == ours.id_of("[CLS]")


@pytest.mark.parametrize("said", [{}, MASK, {"do_lower_case": False}], ids=str)
def test_mpnet_has_the_words_of_bert_and_the_marks_of_roberta(said: dict[str, Any], tmp_path: Path) -> None:
    folders.write_wordpiece(tmp_path)
    vocabulary = (tmp_path / "vocab.txt").read_text()
    for theirs, its in {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}.items():
        vocabulary = vocabulary.replace(f"{theirs}\n", f"{its}\n")
    (tmp_path / "vocab.txt").write_text(vocabulary)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MPNetTokenizer", **said}))
    ours = same(tmp_path, "MPNet", "MPNetTokenizer", **said)
    first, *_, last = ours.encode("a <mask>")
    assert (first.id, last.id) == (ours.id_of("<s>"), ours.id_of("</s>"))


def test_the_class_may_stand_in_config_json(tmp_path: Path) -> None:
    folders.write_wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(CheckpointError, match=r"vocab\.json and merges\.txt"):
        read(tmp_path, "GPT-2")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "tokenizer_class": "BertTokenizerFast"}))
    assert read(tmp_path, "GPT-2").encode("x")[0].text == "[CLS]"


def test_pieces_that_unicode_calls_line_ends_count_as_pieces(tmp_path: Path) -> None:
    """The multilingual vocabulary has such; splitting there would shift every id behind them."""
    folders.write_wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    pieces = (tmp_path / "vocab.txt").read_text().rstrip("\n").split("\n")
    at = pieces.index("x")
    changed = [*pieces[:at], "\u2028", "\u0085", "\x0b", *pieces[at:]]
    (tmp_path / "vocab.txt").write_text("\n".join(changed) + "\n", encoding="utf-8")
    ours = same(tmp_path, "BERT", "BertTokenizer")
    assert ours.id_of("x") == at + 3


@pytest.mark.parametrize("name", ["BertJapaneseTokenizer", "BertweetTokenizer", "HerbertTokenizerFast"])
def test_classes_that_split_otherwise_are_refused(name: str, tmp_path: Path) -> None:
    folders.write_wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    with pytest.raises(
        CheckpointError, match=rf"{name.removesuffix('Fast')}, which VizFormer does not read: .*tokenizer\.json"
    ):
        read(tmp_path, "BERT")


def test_a_class_that_nobody_knows_is_noted(tmp_path: Path) -> None:
    folders.write_wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MyTokenizer"}))
    found = by_class(Folder(tmp_path), BY_NAME["BERT"].tokenizer)
    assert isinstance(found, Vocabularies)
    assert "MyTokenizer" in str(found.notes[0])


def test_added_tokens_of_the_older_file(tmp_path: Path) -> None:
    """added_tokens.json, as `transformers` 2 to 4 wrote it for a padding that was added to GPT-2."""
    size = byte_level(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[PAD]": size, "<unk>": 3}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    ours = read(tmp_path, "GPT-2")
    assert ours.id_of("[PAD]") == size
    assert [token.id for token in ours.encode("[PAD]<unk>")] == [size, 3]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("added_tokens.json", lambda size: {"[A]": size + 1}, "do not follow"),
        ("added_tokens.json", lambda size: {"[A]": -1}, "no whole number"),
        ("added_tokens.json", lambda size: {"[A]": 1.5}, "no whole number"),
        ("added_tokens.json", lambda size: {"[A]": 2**40}, "no whole number"),
        ("added_tokens.json", lambda size: {"\ud800": size}, "is no token"),
        ("added_tokens.json", lambda size: {"<s>": size}, "another id already"),
        ("added_tokens.json", lambda size: [1], "object"),
        ("tokenizer_config.json", lambda size: {"added_tokens_decoder": {"x": {"content": "y"}}}, "decoder"),
        ("tokenizer_config.json", lambda size: {"added_tokens_decoder": {"9" * 5000: {"content": "y"}}}, "decoder"),
        ("tokenizer_config.json", lambda size: {"added_tokens_decoder": {str(size): {}}}, "added_tokens_decoder"),
        ("tokenizer_config.json", lambda size: {"added_tokens_decoder": {"7": {"content": "<s>"}}}, "another id"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_added_tokens_that_do_not_fit(name: str, content: Callable[[int], object], said: str, tmp_path: Path) -> None:
    size = byte_level(tmp_path)
    (tmp_path / name).write_text(json.dumps(content(size)))
    with pytest.raises(CheckpointError, match=said):
        read(tmp_path, "GPT-2")


# What each family opens without tokenizer.json (the others: nothing); the README and the messages say the same.
FILES = {
    "GPT-2": {"vocab.json", "merges.txt"},
    "OPT": {"vocab.json", "merges.txt"},
    "BART": {"vocab.json", "merges.txt"},
    "RoBERTa": {"vocab.json", "merges.txt"},
    "Qwen2": {"vocab.json", "merges.txt"},
    "Qwen3": {"vocab.json", "merges.txt"},
    "BERT": {"vocab.txt"},
    "DistilBERT": {"vocab.txt"},
    "T5": {"spiece.model"},
    "LLaMA": {"tokenizer.model"},
    "Marian": {"vocab.json", "source.spm", "target.spm"},
    **{name: {"vocab.txt"} for name in ("ERNIE", "Megatron-BERT", "MPNet")},
    **{name: {"vocab.json", "merges.txt"} for name in ("data2vec", "RoBERTa-PreLayerNorm", "XLM-RoBERTa-XL", "MVP")},
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_what_is_missing_is_named(family: Family, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        by_class(Folder(tmp_path), family.tokenizer)
    files = {"tokenizer.json"} if "mbart" in family.types else FILES.get(family.name, {"tokenizer.json"})
    for file in files:
        assert file in str(caught.value)


def test_json_that_is_parsed_here_is_smaller_than_what_is_tried_elsewhere(tmp_path):
    """One emoji makes four bytes of each character, twice: of 64 MiB that were 600."""
    (tmp_path / "config.json").write_bytes(b'"' + b"x" * JSON_LIMIT + '😀"'.encode())
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="has 16,777,222 bytes; at most 16,777,216 are read"):
            Folder(tmp_path).json("config.json")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert len(Folder(tmp_path).text("config.json")) == JSON_LIMIT + 3


def test_a_vocabulary_of_characters_without_an_unknown_token_refuses_what_it_does_not_know() -> None:
    backend = Backend(models.WordLevel({c: i for i, c in enumerate("\n abc")}))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    ours = tried(Tokenizer(backend))
    assert [token.id for token in ours.encode("a cab\n")] == [2, 1, 4, 2, 3, 0]
    with pytest.raises(TokenizerError, match='"Z" is not in the vocabulary of this model'):
        ours.encode("aZ")

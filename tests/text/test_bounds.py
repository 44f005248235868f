"""What a tokenizer may ask for, held before it is run; and a panic of the library is an error like any other."""

import json
import time
import unicodedata

import pytest
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from tests.checkpoints import hostile
from vizformer.errors import TokenizerError
from vizformer.text import Tokenizer, bounds, text_growth, trial
from vizformer.text.text_growth import PatternError, cost

ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PUBLISHED = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2
    rf"{ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",  # Qwen
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{ENDINGS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",  # GPT-4o
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",  # DeepSeek
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",  # CLIP
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[0-9][0-9][0-9]",
    r"[\s\S]",
    r"[\s,]+",
    " ",
    ".",
    r"\d+",
    r"\w+|[^\w\s]+",
    " {2,}",
    r"\s{2,}|[\n\r\t]",
    r"(\s+)",
    r"[\p{Lu}&&[^\p{Han}]]+",
    r"[^\r\n\p{L}]?+\p{L}++",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    rf"{ENDINGS}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",  # Kimi
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{ENDINGS}?|\s+",
    "^ | $",  # SentencePiece's spaces, as `checkpoints/tokenizers/sentencepiece_files.py` writes them
    r"[\u3400-\u4DBF\u4E00-\u9FFF]",  # zh-en
]
QUADRATIC = [" +$", r" +▁", r"^▁+$", r"\s+$", r"a*b", r"a{2,}b"]
EXPLOSIVE = [
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+",
    "a*a*b",
    "a?" * 20 + "a" * 20,
    r"(a)\1",
    "(?R)",
    "x" * 3000,
    "(.*)*",
    "(.+)+x",
    "((a*)b)*c",
    "a{1,9}{1,9}",
    "a{1,9}+",
    "((a{8}){8}){8}",
    "(a{1,8}){1,8}b",
    "(?=a*b)c",
    "[a",
    "(a",
    "a)",
    "*",
    "(?:a*|b)*",
    "(a?){30}a{30}",
    "(a*)a*b",
    "(?(1)a|b)",
    r"\g<1>",
    "(?:a+b|c)+d",
    "(?:a+b|c)d*e",
    "(?:a?a?a?a?)" * 10 + "a" * 40,
    "a{99999}",
    r"(a+)+\[a+b",
    # Oniguruma ends these classes elsewhere than one would think
    "[[:x:](a+)+b]",
    "[](a+)+b]",
    "[^](a+)+b]",
    r"[\c](a+)+b]",
]


@pytest.mark.parametrize("pattern", PUBLISHED)
def test_patterns_of_published_tokenizers_are_harmless(pattern):
    assert cost(pattern) == "linear"


@pytest.mark.parametrize("pattern", QUADRATIC)
def test_one_repetition_that_can_fail_takes_the_square(pattern):
    assert cost(pattern) == "quadratic"


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern):
    with pytest.raises(PatternError):
        cost(pattern)


@pytest.mark.sample(24)
@pytest.mark.parametrize("pattern", [*PUBLISHED, *QUADRATIC])
@pytest.mark.parametrize("text", ["a", " ", "\n", "é", "A", "▁", "1", "!", "aA", " a", "A\n", "中"])
def test_a_pattern_that_is_let_through_is_quick_on_long_runs(pattern, text):
    """The bounds say so of every pattern; here the library is asked."""
    splitter = pre_tokenizers.Split(Regex(pattern), "isolated")
    start = time.process_time()
    splitter.pre_tokenize_str(text * (3000 // len(text)) + "☃")
    assert time.process_time() - start < 1


def test_growth_is_at_least_what_the_library_makes():
    parts = [
        normalizers.Replace("a", "xyz"),
        normalizers.Replace(Regex("[b-d]"), "12345"),
        normalizers.Replace("ab", ""),
        normalizers.Prepend("▁▁"),
        normalizers.NFKD(),
        normalizers.NFC(),
        normalizers.Lowercase(),
        normalizers.BertNormalizer(),
        normalizers.ByteLevel(),
        normalizers.StripAccents(),
        normalizers.Strip(),
    ]
    for first in parts:
        for second in parts:
            both = normalizers.Sequence([first, second])
            factor = text_growth.growth(json.loads(both.__getstate__()), None)
            for text in ("a", "abcd" * 9, "\ufdfa", "\u0130é", "中文", "🐱", "b\u0301\u0323"):
                reach = len(unicodedata.normalize("NFKD", text)) * factor
                assert len(both.normalize_str(text)) <= reach, (first, second, text)


def test_a_decoder_with_a_sign_for_spaces_may_write_it_beside_every_character():
    assert text_growth.decoded({"type": "Metaspace", "replacement": "▁"}) == 2
    assert text_growth.decoded({"type": "Metaspace", "replacement": "▁▁▁"}) == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": []}, "it has no model"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "ABCD!"}}, "an invalid table"),
        ({"post_processor": {"special_tokens": {"[CLS]": {"ids": [1] * 17, "tokens": ["a"] * 16}}}}, "too many"),
        ({"post_processor": {"special_tokens": {"[CLS]": {"ids": [1] * 16, "tokens": ["a"] * 16}}}}, None),
    ],
)
def test_parts_that_are_none_or_too_long_are_refused(changes, said):
    content = json.loads(hostile.tokenizer({})) | changes
    if "post_processor" in changes:
        content["post_processor"] |= {"type": "TemplateProcessing", "single": [], "pair": []}
    if said is None:
        return bounds.check(content)
    with pytest.raises(text_growth.BoundsError, match=said):
        bounds.check(content)


@pytest.mark.parametrize("pattern", ["", Regex("")])
def test_a_text_may_be_cut_between_any_two_characters(pattern):
    """As tokenizers of single characters do; to replace what stands there makes the library panic."""
    backend = Backend(models.BPE({"a": 0, "b": 1}, []))
    backend.pre_tokenizer = pre_tokenizers.Split(pattern, "isolated")
    trial.examine(backend.to_str())
    assert backend.encode("abba").tokens == ["a", "b", "b", "a"]
    backend.normalizer = normalizers.Replace(pattern, "x")
    with pytest.raises(trial.TrialError, match="Replace has an invalid pattern"):
        trial.examine(backend.to_str())


@pytest.mark.sweep
def test_small_and_large_files_are_held_to_the_same_bounds():
    """The larger one in a process of its own."""
    for padding in ("", " " * 3_000_000):
        trial.examine(hostile.tokenizer({}) + padding)
        with pytest.raises(trial.TrialError, match="may take for ever") as found:
            trial.examine(hostile.tokenizer(hostile.TOKENIZERS["a pattern that goes back"]()) + padding)
        message = (
            found.value.message
        )  # with its values apart, so that the reader's language has it, from either process
        assert message.values["pattern"] == "(a+)+$|(a|aa)+b"
        assert "{pattern}" in message.text
        with pytest.raises(trial.TrialError, match="out of bounds" if padding else "twice"):
            trial.examine(
                hostile.tokenizer(hostile.TOKENIZERS["a table that is damaged"]()) + padding
                if padding
                else hostile.tokenizer({}).replace('"decoder": null', '"decoder": null, "decoder": null')
            )


@pytest.mark.parametrize("odd", ["\x00", "\n", "\u202e", "\ud800"])
def test_what_is_quoted_of_a_file_can_be_shown(odd):
    """A score that is a text, a type of a part, and a pattern."""
    for content in (
        {"model": {"type": "Unigram", "vocab": [[f"a{odd}", odd]]}},
        {"model": {"type": f"BPE{odd}"}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": f"({odd}+)+b"}, "content": "x"}},
    ):
        with pytest.raises(text_growth.BoundsError) as found:
            bounds.check(json.loads(hostile.tokenizer({})) | content)
        assert str(found.value).isprintable()


def test_what_was_found_is_kept(monkeypatch):
    content = hostile.tokenizer(hostile.TOKENIZERS["normalizers that multiply"]()) + " "
    with pytest.raises(trial.TrialError):
        trial.examine(content)
    monkeypatch.setattr(bounds, "check", lambda *_: pytest.fail("looked at again"))
    with pytest.raises(trial.TrialError):
        trial.examine(content)


@pytest.mark.slow
@pytest.mark.sweep
def test_a_file_of_which_reading_takes_too_much_memory(monkeypatch):
    """As lists in lists do: the other process ends, this one does not."""
    monkeypatch.setattr(trial, "_MOST_COMMAS", 10**9)
    with pytest.raises(trial.TrialError, match="too much memory or time"):
        trial.examine('{"truncation": [' + "[[[[]]]]," * 2_000_000 + "[]]}")


def test_a_panic_is_an_error_of_the_tokenizer():
    backend = Backend.from_str(
        hostile.tokenizer(
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": hostile.damaged_charsmap("q")}}
        )
    )
    tokenizer = Tokenizer(backend)
    assert tokenizer.encode("abc")
    for text in ("quick", "quick" * 5000):
        with pytest.raises(TokenizerError, match=r"cannot be split into tokens.*out of bounds"):
            tokenizer.encode(text)
    with pytest.raises(TokenizerError, match="cannot be split"):
        tokenizer.encode_ids(["abc", "quick"])


def test_control_flow_passes_through(monkeypatch):
    """Ctrl-C, and what Streamlit raises to stop a run, are no failures of the library."""
    from streamlit.runtime.scriptrunner_utils.exceptions import StopException

    tokenizer = Tokenizer(Backend(models.WordLevel({"a": 0}, unk_token="a")))
    for kind in (KeyboardInterrupt, SystemExit, StopException):

        class Raising:
            def encode(self, *_, kind=kind, **__):
                raise kind

        monkeypatch.setattr(tokenizer, "_backend", Raising())
        with pytest.raises(kind):
            tokenizer.encode("a")


def test_a_text_that_would_become_too_long_is_refused_and_a_shorter_one_is_not():
    backend = Backend(models.WordLevel({"a": 0}, unk_token="a"))
    backend.normalizer = normalizers.Replace("a", "a" * 64)
    tokenizer = Tokenizer(backend)
    assert len(tokenizer.encode("a" * 100)) == 1
    with pytest.raises(TokenizerError, match="10,000 characters is too long: this tokenizer"):
        tokenizer.encode("a" * 10_000)
    backend = Backend(models.WordLevel({"a": 0}, unk_token="a"))
    backend.decoder = decoders.Replace("a", "a" * 64)
    assert Tokenizer(backend).decode([0] * 10)
    with pytest.raises(TokenizerError, match="too long"):
        Tokenizer(backend).decode([0] * 10_000)


@pytest.mark.sweep
@pytest.mark.slow
def test_a_long_text_is_no_matter_where_nothing_grows():
    backend = Backend(models.BPE({"a": 0}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert len(Tokenizer(backend).encode("a" * 1_000_000)) == 1_000_000

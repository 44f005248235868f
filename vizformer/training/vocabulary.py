"""Learning a vocabulary: byte-level BPE in which every Chinese character stands alone."""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
# Han characters, and the punctuation that stands between them.
_HAN = r"[\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\u3001-\u301C\uFF00-\uFF65]"


def train_bpe(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Byte-pair encoding over UTF-8 bytes: no text is ever unknown (Sennrich et al. 2016; Radford et al. 2019).

    Chinese characters are kept apart, so that a token of a Chinese sentence is a character (or, for rare ones, some
    of its bytes) and never a string across words: attention is then read off character by character.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_HAN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=[PAD, BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(single=f"$A {EOS}", special_tokens=[(EOS, tokenizer.token_to_id(EOS))]),
        ]
    )
    return tokenizer

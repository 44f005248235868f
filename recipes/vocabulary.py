"""Learning a vocabulary: byte-level BPE or WordPiece, in both of which every Chinese character stands alone."""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
BERT_PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
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


def train_wordpiece(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """WordPiece over lower-cased words and single Chinese characters, as BERT's (Devlin et al. 2018; Wu et al. 2016).

    A piece inside a word begins with ##; a character that was never learned becomes [UNK].
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        limit_alphabet=vocab_size // 2,
        special_tokens=[BERT_PAD, UNK, CLS, SEP, MASK],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = [(piece, tokenizer.token_to_id(piece)) for piece in (CLS, SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}", pair=f"{CLS} $A {SEP} $B:1 {SEP}:1", special_tokens=ids
    )
    return tokenizer

"""LLaMA 3's tokenizer.model: a line for each token, its bytes in base64 and its rank; no merges, no special tokens.

A text is cut into words; a word that is a token is one, else the two neighbours that make the token of the lowest rank
are joined, until none do.  `tokenizers` wants the pairs instead: all that make a token, in the order of its rank.

Source: github.com/openai/tiktoken (load.py, _educational.py); llama3/tokenizer.py of github.com/meta-llama/llama-models.
"""

import base64
import binascii

from tokenizers import Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers.refusals import guarded, raise_refusal
from vizformer.checkpoints.tokenizers.sentencepiece_files import MOST_CUTS
from vizformer.checkpoints.tokenizers.vocabularies import LLAMA3_WORDS
from vizformer.text.bounds import LONGEST_TOKEN, MOST_ENTRIES
from vizformer.text.pieces import byte_letters

BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"
_MARKS = {0: BEGIN, 1: END, 6: "<|start_header_id|>", 7: "<|end_header_id|>", 9: "<|eot_id|>"}
_MOST_MARKS = 256


def is_one(folder: Folder, name: str) -> bool:
    """Whether a file begins as one of these: the line of its first token."""
    with folder.file(name).open("rb") as file:
        first, __, rest = file.read(4 * LONGEST_TOKEN).partition(b"\n")
    return bool(rest) and first.endswith(b" 0") and _bytes(first[:-2]) is not None


def read(folder: Folder, name: str, rows: int) -> Backend:
    """The tokenizer; behind the tokens of the file stand the marks, as many as the table of embeddings has `rows` for."""
    letters = {byte: letter for letter, byte in byte_letters().items()}
    ids: dict[bytes, int] = {}
    for line in folder.text(name).splitlines():
        encoded, __, rank = line.partition(" ")
        token = _bytes(encoded.encode())
        if (
            token is None
            or rank != str(len(ids))
            or token in ids
            or len(token) > LONGEST_TOKEN
            or len(ids) == MOST_ENTRIES
        ):
            raise_refusal(name, f"line {len(ids) + 1} is not the next token with its rank")
        ids[token] = len(ids)
    if not all(bytes([byte]) in ids for byte in range(256)):
        raise_refusal(name, "not every byte is a token")
    if sum(map(len, ids)) > MOST_CUTS:
        raise_refusal(name, f"its tokens have more than {MOST_CUTS:,} bytes together")
    pairs = [
        (rank, ids[token[:cut]], ids[token[cut:]])
        for token, rank in ids.items()
        for cut in range(1, len(token))
        if token[:cut] in ids and token[cut:] in ids
    ]
    spelled = ["".join(map(letters.__getitem__, token)) for token in ids]
    marks = [_MARKS.get(n, f"<|reserved_special_token_{n}|>") for n in range(max(0, min(rows - len(ids), _MOST_MARKS)))]

    def build() -> Backend:
        merges = [(spelled[first], spelled[second]) for __, first, second in sorted(pairs)]
        vocabulary = {token: id for id, token in enumerate([*spelled, *marks])}
        backend = Backend(models.BPE(vocabulary, merges, ignore_merges=True))
        cut = pre_tokenizers.Split(Regex(LLAMA3_WORDS), "isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(False, use_regex=False)])
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens(marks)
        if marks:
            begin = processors.TemplateProcessing(single=[BEGIN, "$A"], special_tokens=[(BEGIN, vocabulary[BEGIN])])
            backend.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
        return backend

    return guarded(name, build)


def _bytes(encoded: bytes) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True) or None
    except (binascii.Error, ValueError):
        return None

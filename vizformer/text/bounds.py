"""The bounds of a tokenizer.json: its parts, its added tokens, and its vocabulary.

A file in which something is too large, too many, or of a kind that is not known is refused by name.  What texts may
become in it stands in `vizformer.text.text_growth`.
"""

from vizformer.text.text_growth import LONGEST_TEXT, MOST_PARTS, BoundsError, called, decoded, growth, parts, shown

MOST_ENTRIES = 2**20  # tokens and merges; the largest vocabularies in use have 900,000
MOST_IDS = 2**22
MOST_ADDED = 2**16
LONGEST_TOKEN = 1024  # characters


def check(content: object, rows: int | None = None) -> None:
    """Checks a whole file.

    `rows` is the size of the model's largest embedding table, if it is known: larger ids cannot be this model's.

    Raises:
        BoundsError: something in it is too large, too many, or of a kind that is not known.
    """
    if not isinstance(content, dict):
        raise BoundsError("it is not a JSON object")
    found = [content.get(name) for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
    if sum(1 for part in found for __ in parts(part)) > MOST_PARTS:
        raise BoundsError("it has more than {most} parts", most=MOST_PARTS)
    growth(found[0], found[1])
    decoded(found[3])
    _check_marks(found[2])
    _check_added(content.get("added_tokens"), rows)
    _check_model(content.get("model"), rows)


def _check_marks(post_processor: object) -> None:
    for part in parts(post_processor):
        kind = part.get("type")
        if kind == "TemplateProcessing":
            for name in ("single", "pair"):
                items = part.get(name)
                if not isinstance(items, list) or len(items) > 32:
                    raise BoundsError("TemplateProcessing puts more than 32 things around a text ({name})", name=name)
                if sum(isinstance(item, dict) and "Sequence" in item for item in items) > 2:
                    raise BoundsError("TemplateProcessing repeats a text")
            special = part.get("special_tokens")
            if not isinstance(special, dict) or len(special) > 64 or not all(map(_is_short, special.values())):
                raise BoundsError("TemplateProcessing has too many special tokens")
        elif kind not in ("BertProcessing", "RobertaProcessing", "ByteLevel"):
            raise BoundsError("{part} is not known", part=called(part))


def _is_short(token: object) -> bool:
    lists = [token.get("ids"), token.get("tokens")] if isinstance(token, dict) else [None]
    return all(isinstance(items, list) and len(items) <= 16 for items in lists)


def _check_added(tokens: object, rows: int | None) -> None:
    if tokens is None:
        return
    if not isinstance(tokens, list) or len(tokens) > MOST_ADDED:
        raise BoundsError("it adds more than {most} tokens to its vocabulary", most=f"{MOST_ADDED:,}")
    for token in tokens:
        content, id = (token.get("content"), token.get("id")) if isinstance(token, dict) else (None, None)
        if not isinstance(content, str) or not content or len(content) > LONGEST_TOKEN:
            raise BoundsError("an added token is empty, or longer than {most} characters", most=f"{LONGEST_TOKEN:,}")
        _check_id(id, rows)


def _check_id(id: object, rows: int | None) -> None:
    if type(id) is not int or not 0 <= id < MOST_IDS:
        said = f"{id:,}" if type(id) is int and abs(id) < 2**64 else type(id).__name__
        raise BoundsError("a token has the id {id}; they go up to {most} at most", id=said, most=f"{MOST_IDS - 1:,}")
    if rows is not None and id >= rows:
        raise BoundsError(
            "its token ids go up to {id}, but the weights have {rows} rows: they belong to different models",
            id=f"{id:,}",
            rows=f"{rows:,}",
        )


def _check_model(model: object, rows: int | None) -> None:
    if not isinstance(model, dict):
        raise BoundsError("it has no model")
    if model.get("type", "BPE") not in ("BPE", "Unigram", "WordPiece", "WordLevel"):
        raise BoundsError("{part} is not known", part=called(model))
    vocabulary, merges = model.get("vocab"), model.get("merges") or []
    if not isinstance(vocabulary, (dict, list)) or not isinstance(merges, list):
        raise BoundsError("it has no vocabulary")
    if len(vocabulary) > MOST_ENTRIES or len(merges) > min(MOST_ENTRIES, 4 * len(vocabulary)):
        raise BoundsError(
            "{tokens} tokens and {merges} merges; at most {most} are read",
            tokens=f"{len(vocabulary):,}",
            merges=f"{len(merges):,}",
            most=f"{MOST_ENTRIES:,}",
        )
    if isinstance(vocabulary, dict):
        if vocabulary:
            ids = vocabulary.values()
            if any(type(id) is not int for id in ids) or min(ids) < 0:
                raise BoundsError("a token has an invalid id")
            _check_id(max(ids), rows)
        longest = max(map(len, vocabulary), default=0)
    else:
        if vocabulary:
            _check_id(len(vocabulary) - 1, rows)
        for item in vocabulary:
            if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
                raise BoundsError("a token has no score")
            if not isinstance(item[1], (int, float)) or not abs(item[1]) < 1e9:
                raise BoundsError(
                    "the token {token} has the score {score}", token=shown(item[0], 16), score=shown(item[1], 20)
                )
        longest = max((len(item[0]) for item in vocabulary), default=0)
    if longest > LONGEST_TOKEN:
        raise BoundsError(
            "a token has {longest} characters; at most {most} are read",
            longest=f"{longest:,}",
            most=f"{LONGEST_TOKEN:,}",
        )
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        if isinstance(text := model.get(name), str) and len(text) > LONGEST_TEXT:
            raise BoundsError(
                "its {name} has {n} characters; at most {most} are read",
                name=name,
                n=f"{len(text):,}",
                most=LONGEST_TEXT,
            )
    if (longest_word := model.get("max_input_chars_per_word", 100)) and (
        type(longest_word) is not int or not 0 < longest_word <= 512
    ):
        raise BoundsError("it looks up words of more than 512 characters (max_input_chars_per_word)")

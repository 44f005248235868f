"""Words as static word vectors take them: no subwords, no capitals, no punctuation."""

import re

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[\u4e00-\u9fff]")


def plain_words(text: str) -> list[str]:
    """Runs of English letters, in lower case, and single Chinese characters; all else stands between words."""
    return _WORD.findall(text.lower().replace("’", "'"))

"""The heads of the kind of attention that is looked at, and the tokens between which they attend."""

from collections.abc import Sequence
from dataclasses import dataclass

from vizformer.analysis import Kind
from vizformer.components.attention import ByWord
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import row_names
from vizformer.web.words import labels


@dataclass(frozen=True)
class Heads:
    """The heads of the chosen kind of attention, and the tokens between which they attend."""

    subject: Subject
    kind: Kind
    shape: tuple[int, int, int, int]  # layers, heads, queries, keys
    queries: Sequence[Token]
    keys: Sequence[Token]

    @property
    def query_tokens(self) -> list[str]:
        if state.view().level == "words" and state.view().picture == "map":
            return labels.texts(self.queries)  # a word of several rows has no one token that it chooses
        return row_names.queries(self.subject, self.kind)

    @property
    def by_word(self) -> ByWord | None:
        """The words of queries and keys, where the reader wants words."""
        if state.view().level != "words":
            return None
        return [token.word for token in self.queries], [token.word for token in self.keys]

    @property
    def key_tokens(self) -> list[str]:
        return labels.texts(self.keys)

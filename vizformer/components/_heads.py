"""The base of the views of packed heads: it mounts them on a page and writes them to a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from vizformer.components import _mount
from vizformer.components.payload import HeadsPayload, describe

ByWord = tuple[Sequence[int | None], Sequence[int | None]]


class HeadsSelection(Protocol):
    """The selection in a view, with indices from 0: a dataclass whose defaults are the initial selection."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init__(self) -> None: ...

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Reads what a browser sent; anything that is not what it should be becomes the default."""

    def within(self, payload: HeadsPayload) -> Self:
        """The selection clipped to the shape of the payload."""


Selected = TypeVar("Selected", bound=HeadsSelection)


@dataclass(frozen=True)
class HeadsComponent(Generic[Selected]):
    """A view of the heads of one kind."""

    component: _mount.Component
    selection: type[Selected]
    title: str
    refused: tuple[str, str]  # which payloads it cannot show (`HeadsPayload.held`), and what to do instead
    first: Callable[[HeadsPayload], Selected]

    def peek(self, *, key: str, selected: Selected | None = None) -> Selected:
        """The selection that the next `mount` with this key and `selected` will return, before its numbers are computed.

        Not cut to the size of the heads yet: they are not known here.
        """
        shown, _ = _mount.current(key, selected, self.selection.parse, ahead=True)
        return shown or self.selection()

    def mount(
        self,
        payload: HeadsPayload,
        *,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        selected: Selected | None = None,
        layers: Sequence[int | str] | None = None,
        by_word: ByWord | None = None,
        words: Mapping[str, str] | None = None,
        key: str,
        height: int | None = None,
        strip: Mapping[str, Any] | None = None,
    ) -> Selected:
        """Shows the heads on a Streamlit page; what is selected now.

            layers: label of each layer; a number stands in the component's words, a text as it is. Default 0, 1, ...
            words: those that are not the usual ones.
            by_word: the word of each query and of each key (None: a token that stands for itself), where the large map is
                to have words for rows and columns: the sum over a key word's tokens, the mean over a query word's.
            height: of the whole component in px; by default it fits the sequence.
            strip: heads that stand above the small maps where these are grouped by what the heads do: over how many
                `texts` that was measured (0: not yet, and they are found in the payload), how many heads are `resting`,
                and the `heads`, each a mapping of `layer`, `head`, `target`, `mean`, `low`, `high`.

        Raises:
            ValueError: labels that do not fit the payload, or a payload without the heads that this view shows.
        """
        data = self._data(payload, query_tokens, key_tokens, layers, by_word, height)
        data |= {} if strip is None else {"strip": dict(strip)}
        wish = None if selected is None else selected.within(payload)
        shown, echo = _mount.current(key, wish, lambda report: self.selection.parse(report).within(payload))
        sent = asdict((echo.sent or self.selection()).within(payload))
        self.component.mount(data, payload.columns, words=words, version=echo.version, selected=sent, key=key)
        return (shown or self.selection()).within(payload)

    def to_html(
        self,
        payload: HeadsPayload,
        *,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        selected: Selected | None = None,
        layers: Sequence[int | str] | None = None,
        by_word: ByWord | None = None,
        words: Mapping[str, str] | None = None,
        height: int | None = None,
        title: str | None = None,
    ) -> _mount.Html:
        return self.component.page(
            self._data(payload, query_tokens, key_tokens, layers, by_word, height),
            payload.columns,
            words=words,
            selected=asdict((selected or self.first(payload)).within(payload)),
            title=title or self.title,
        )

    def _data(
        self,
        payload: HeadsPayload,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        layers: Sequence[int | str] | None,
        by_word: ByWord | None,
        height: int | None,
    ) -> dict[str, Any]:
        held, instead = self.refused
        if payload.held == held:
            raise ValueError(instead)
        data = describe(payload, query_tokens, key_tokens, layers)
        if by_word is not None:
            data |= {"query_words": list(by_word[0]), "key_words": list(by_word[1])}
            if (len(by_word[0]), len(by_word[1])) != payload.shape[2:]:
                raise ValueError(f"by_word names the words of {len(by_word[0])} queries and {len(by_word[1])} keys")
        return {**data, "height": height}

"""A picture of heads as a widget of a notebook: the component of the pages, and what is chosen in it as traits.

    widget = HeadsWidget(attention.VIEW, pack, query_tokens=tokens, key_tokens=tokens)
    widget.head = 3                     # the picture follows
    widget.observe(print, "query")      # whoever presses a row is heard

anywidget carries it to Jupyter, VS Code, Colab and marimo: `pip install "vizformer[notebook]"`.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import anywidget
import traitlets

from vizformer.components._mount import HeadsComponent
from vizformer.components.lines import Pin
from vizformer.components.packing import HeadsPayload

Pack = Callable[[int, int], HeadsPayload]


class Place(traitlets.TraitType[int | None, int | None]):
    """A layer, head, query or key that exists."""

    default_value = None

    def validate(self, obj: Any, value: object) -> int | None:
        found: int | None = obj.existing(self.name, value)
        return found


class HeadsWidget(anywidget.AnyWidget):
    """A view of heads, mounted by a notebook.

    Attributes:
        layer: by the number that stands in the picture.
        head: None where lines of several heads lie over each other.
        query, key: None where none is chosen.
        payload: the numbers that the browser has.
        selected: all that is chosen, as the component says it, counted from 0.
    """

    layer, head, query, key = Place(), Place(), Place(), Place()
    _numbers = traitlets.Dict().tag(sync=True)  # what the component is called with
    _chosen = traitlets.Dict().tag(sync=True)  # what is selected; a new `version` where Python says so
    _report = traitlets.Any().tag(sync=True)  # what the browser says of itself

    def __init__(
        self,
        view: HeadsComponent[Any],
        pack: Pack,
        *,
        query_tokens: Sequence[str],
        key_tokens: Sequence[str],
        layers: Sequence[int] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Args:
        pack: the numbers of the view, among them those of a layer and head, counted from 0.
        layers: the number of each layer. Default 0, 1, ...
        notes: stand above the picture.
        """
        self._view, self._pack, self._notes = view, pack, list(notes)
        self._labels: dict[str, Any] = {"query_tokens": query_tokens, "key_tokens": key_tokens, "layers": layers}
        self._esm = view.component.notebook_script
        self.payload = pack(0, 0)
        n_layers, heads, queries, keys = self.payload.shape
        self._places: dict[str, Sequence[int]] = {
            "layer": range(n_layers) if layers is None else list(layers),
            **{"head": range(heads), "query": range(queries), "key": range(keys)},
        }
        self.selected = view.first(self.payload).within(self.payload)
        chosen = {"version": 1, "selected": asdict(self.selected)}
        super().__init__(_numbers=self._content(), _chosen=chosen, **{name: self._of(name) for name in self._places})

    def existing(self, name: str, value: object) -> int | None:
        """The place that a trait is to be; a TraitError that names those that exist for any other."""
        places, number = self._places[name], value
        if hasattr(value, "__index__"):  # of numpy too
            number = operator.index(value)
        if number in places or (number is None and _at(self._view.selection(), name) is None):
            return number  # type: ignore[return-value]
        gaps = len(places) != places[-1] - places[0] + 1
        there = ", ".join(map(str, places)) if gaps or len(places) < 3 else f"{places[0]} to {places[-1]}"
        raise traitlets.TraitError(f"There is no {name} {repr(value)[:60]}: choose {there}.")

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """Takes of a browser its report and nothing else."""
        super().set_state({name: sync_data[name] for name in ("_report",) if name in sync_data})

    @traitlets.observe("_report")
    def _heard(self, change: Mapping[str, Any]) -> None:
        """Follows a browser that knows the last version and chose what exists; all else it said is left alone."""
        report = change["new"]
        if not isinstance(report, Mapping) or report.get("version") != self._chosen["version"]:
            return
        chosen = self._view.selection.parse(report).within(self.payload)
        said = {name: tuple(one) if isinstance(one := report.get(name), list) else one for name in asdict(chosen)}
        if said == asdict(chosen):
            self._choose(chosen, self._chosen["version"])

    @traitlets.observe("layer", "head", "query", "key")
    def _asked(self, change: Mapping[str, Any]) -> None:
        name, value = change["name"], change["new"]
        if value == self._of(name):
            return
        at = None if value is None else self._places[name].index(value)
        part: dict[str, Any]
        if hasattr(self.selected, name):
            part = {name: at}
        elif name == "head":
            part = {"heads": None if at is None else (at,)}
        else:
            part = {"pinned": None if at is None else Pin(name, at)}
        self._choose(replace(self.selected, **part).within(self.payload), self._chosen["version"] + 1)

    def _choose(self, selected: Any, version: int) -> None:
        layer, head = selected.layer, getattr(selected, "head", 0)
        with self.hold_sync(), self.hold_trait_notifications():
            if not self.payload.has(layer, head):
                self.payload = self._pack(layer, head)
                self._numbers = self._content()
            self.selected = selected
            self._chosen = {"version": version, "selected": asdict(selected)}
            for name in self._places:
                setattr(self, name, self._of(name))

    def _of(self, name: str) -> int | None:
        at = _at(self.selected, name)
        return None if at is None else self._places[name][at]

    def _content(self) -> dict[str, Any]:
        return {**self._view.content(self.payload, **self._labels), "notes": self._notes}


def _at(selected: Any, name: str) -> int | None:
    """Where a selection is on an axis: some components name one head, some several; some a cell, some a token."""
    found: int | None
    if hasattr(selected, name):
        found = getattr(selected, name)
    elif name == "head":
        found = selected.heads[0] if len(selected.heads or ()) == 1 else None
    else:
        found = selected.pinned.index if selected.pinned is not None and selected.pinned.side == name else None
    return found

"""What the lesson Add & norm, feed-forward calls the points of a layer and its sublayers."""

from vizformer.web.words.i18n import _


def sublayer(kind: str) -> str:
    return {"self": _("self-attention"), "cross": _("cross-attention"), "feedforward": _("feed-forward")}[kind]


def point_name(name: str, *, adds: bool = True) -> str:
    """A point of a layer (`explain.block_rows.Point.name`): "+ self-attention" ("→" without sums), "norm"."""
    kind, __, what = name.partition(".")
    if kind == "start":
        return _("start")
    return f"{'+' if adds else '→'} {sublayer(kind)}" if what == "sum" else _("norm")


def numbered(names: list[str]) -> list[str]:
    """The same, told apart where they repeat: a layer has several norms."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(f"{name} {seen[name]}" if names.count(name) > 1 else name)
    return found


def stack_point(name: str) -> str:
    """A point of the whole stack, as the trace calls it without the stack: "0.mid" is after layer 0's attention."""
    if name == "final":
        return _("end")
    layer, __, what = name.partition(".")
    short = {"pre": _("start"), "mid": _("att."), "mid_self": _("self"), "mid_cross": _("cross"), "post": _("FF")}
    return short[what] if what == "pre" else f"{layer} {short[what]}"


def colour(name: str) -> int:
    """The number of the colour of a point: what came last, a sum, a norm, or nothing yet."""
    if name == "start" or name.endswith(".pre") or name == "final":
        return 7
    return 1 if name.endswith(".sum") else 0

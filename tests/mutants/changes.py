"""The small changes that are tried: each puts another text in place of a part of one line of a program."""

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "%"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
PAIRS = (
    "sum mean, max min, amax amin, argmax argmin, maximum minimum, any all, floor ceil, tril triu, sin cos, zeros ones"
)
INSTEAD = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), reversed(pair.split()))}
DROPPED = {"clamp", "clip", "clamp_min", "clamp_max", "abs", "sqrt", "log", "exp", "square", "round"}
DROPPED |= {"transpose", "flip", "cumsum", "flatten", "strip", "lower"}  # x.clamp(0) and np.clip(x, 0, 1) become x
INDICES = {
    "head",
    "query",
    "key",
    "layer",
    "row",
    "column",
    "i",
    "j",
    "k",
    "n",
    "at",
    "index",
    "place",
    "position",
    "token",
}
NOT_PROGRAMS = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True)
class Change:
    """A line of a file as it is, and as it is tried."""

    file: str
    line: int  # counted from 1
    before: str
    after: str

    def found(self, text: str) -> int:
        """Its line; where the file has changed since, the nearest one with the same text.

        Raises:
            ValueError: there is no such line any more.
        """
        same = [i for i, line in enumerate(text.split("\n"), 1) if line.strip() == self.before]
        if not same:
            raise ValueError(f"{self.file} has no line {self.before!r} any more")
        return min(same, key=lambda i: abs(i - self.line))

    def written(self, text: str) -> str:
        """The program with this change."""
        lines, i = text.split("\n"), self.found(text) - 1
        lines[i] = lines[i].replace(self.before, self.after)
        return "\n".join(lines)


def choose(root: Path, rooms: tuple[str, ...], number: int, seed: int) -> list[Change]:
    """Lines drawn at random from all that can be changed, and one change of each; what comes first is a sample too."""
    chance, texts = random.Random(seed), {}
    by_line: dict[tuple[str, int], set[str]] = {}
    for room in rooms:
        for path in sorted((root / "vizformer" / room).rglob("*.py")):
            file = str(path.relative_to(root))
            texts[file] = path.read_text(encoding="utf-8")
            program = _Program(texts[file])
            for line, start, end, new in program.edits():
                old = program.lines[line - 1]
                by_line.setdefault((file, line), set()).add((old[:start] + new + old[end:]).strip())
    places, chosen = sorted(by_line), []
    chance.shuffle(places)
    for file, line in places:
        change = Change(
            file, line, texts[file].split("\n")[line - 1].strip(), chance.choice(sorted(by_line[file, line]))
        )
        if _differs(texts[file], change.written(texts[file])):
            chosen.append(change)
        if len(chosen) == number:
            break
    return chosen


def _differs(text: str, changed: str) -> bool:
    try:
        return ast.dump(ast.parse(text)) != ast.dump(ast.parse(changed))
    except SyntaxError:
        return False


def lines_of_statement(text: str, line: int) -> set[int] | None:
    """The lines of the statement of this line, without its body; None where the import runs it."""
    found: set[int] | None = None

    def look(node: ast.AST, inside: bool) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or 0):
                body = getattr(child, "body", None)
                last = body[0].lineno - 1 if body else child.end_lineno or 0
                found = set(range(child.lineno, max(last, child.lineno) + 1)) if inside else None
            look(child, inside or isinstance(child, ast.FunctionDef))

    look(ast.parse(text), False)
    return found


Edit = tuple[int, int, int, str]  # line, from and to which column, the new text


class _Program:
    """All that can be changed in a file, but for annotations, decorators and texts."""

    def __init__(self, text: str) -> None:
        self.lines, self.tree = text.split("\n"), ast.parse(text)

    def edits(self) -> Iterator[Edit]:
        for node in _programs(self.tree):
            yield from self._operators(node)
            yield from self._parts(node)
            if isinstance(node, ast.Call):
                yield from self._call(node)

    def _operators(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.BinOp(left, op, right) if not (_is_no_number(left) or _is_no_number(right)):
                yield from self._between(left, op, right)
                if isinstance(op, ast.Sub | ast.Div | ast.MatMult | ast.FloorDiv):
                    yield from self._swapped(left, right)
                if isinstance(op, ast.Mult | ast.Div):
                    yield from self._replaced(node, self._text(left))
            case ast.BoolOp(op, values):
                for left, right in pairwise(values):
                    yield from self._between(left, op, right)
            case ast.Compare(left, ops, comparators):
                for one, compared, other in zip([left, *comparators], ops, comparators, strict=False):
                    yield from self._between(one, compared, other)
            case ast.AugAssign(target, op, value) if not _is_no_number(value):
                yield from self._between(target, op, value)
            case ast.UnaryOp(ast.USub() | ast.Not(), operand):
                yield from self._replaced(node, self._text(operand))

    def _parts(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.Constant(bool(value)):
                yield from self._replaced(node, str(not value))
            case ast.Constant(int(value)):
                yield from self._replaced(node, str(value + 1))
            case ast.Constant(float(value)):
                yield from self._replaced(node, repr(value * 2 if value else 1.0))
            case ast.Subscript(_, ast.Name(name) | ast.Attribute(_, name) as index) if name in INDICES:
                yield from self._replaced(index, self._text(index), " - 1")
            case ast.Slice(lower, upper, _):
                for bound in (lower, upper):
                    if isinstance(bound, ast.Name | ast.Attribute | ast.BinOp | ast.Call):
                        yield from self._replaced(bound, self._text(bound), " - 1")
            case ast.If(test) | ast.IfExp(test):
                if text := self._text(test):
                    yield from self._replaced(test, f"not {text}")
                if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue):
                    yield from self._replaced(test, "False")

    def _call(self, node: ast.Call) -> Iterator[Edit]:
        function, args = node.func, node.args
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("N_", "_"):
            return
        if name in INSTEAD and (span := self._span(function)):
            yield span[0], span[2] - len(name), span[2], INSTEAD[name]
        if name in ("min", "max") and len(args) == 2:
            yield from self._replaced(node, self._text(args[0]))
            yield from self._replaced(node, self._text(args[1]))
        if name == "range" and args:
            yield from self._replaced(args[-1], self._text(args[-1]), " - 1")
        if name in DROPPED and isinstance(function, ast.Attribute):
            library = isinstance(function.value, ast.Name) and function.value.id in ("np", "torch", "math")
            yield from self._replaced(node, self._text(args[0] if library and args else function.value))
        for one, other in pairwise(args):
            if all(isinstance(arg, ast.Name | ast.Attribute | ast.Subscript) for arg in (one, other)):
                yield from self._swapped(one, other)

    def _span(self, node: ast.expr) -> tuple[int, int, int] | None:
        """Line, first and last column; None where it reaches over several lines."""
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            return None
        return node.lineno, self._column(node.lineno, node.col_offset), self._column(node.lineno, node.end_col_offset)

    def _column(self, line: int, offset: int) -> int:
        """`ast` counts bytes."""
        return len(self.lines[line - 1].encode()[:offset].decode())

    def _text(self, node: ast.expr) -> str:
        """Its text, "" where it reaches over several lines."""
        if not (span := self._span(node)):
            return ""
        found = self.lines[span[0] - 1][span[1] : span[2]]
        return f"({found})" if isinstance(node, ast.BinOp | ast.BoolOp | ast.IfExp | ast.Compare) else found

    def _replaced(self, node: ast.expr, new: str, more: str = "") -> Iterator[Edit]:
        if new and (span := self._span(node)):
            yield *span, new + more

    def _swapped(self, left: ast.expr, right: ast.expr) -> Iterator[Edit]:
        one, other = self._span(left), self._span(right)
        if one and other and one[0] == other[0]:
            middle = self.lines[one[0] - 1][one[2] : other[1]]
            yield one[0], one[1], other[2], self._text(right) + middle + self._text(left)

    def _between(self, left: ast.expr, op: ast.AST, right: ast.expr) -> Iterator[Edit]:
        if type(op) not in OPERATORS or left.end_lineno is None or left.end_col_offset is None:
            return
        old, new = OPERATORS[type(op)]
        for line in range(left.end_lineno, right.lineno + 1):
            start = self._column(line, left.end_col_offset) if line == left.end_lineno else 0
            end = self._column(line, right.col_offset) if line == right.lineno else len(self.lines[line - 1])
            if (at := self.lines[line - 1].find(old, start, end)) >= 0:
                yield line, at, at + len(old), new
                return


def _programs(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in NOT_PROGRAMS or not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if _is_named_constant(node, child) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            ):
                continue
            yield child
            yield from _programs(child)


def _is_named_constant(outer: ast.AST, node: ast.AST) -> bool:
    """A limit, a tolerance or a size in pixels that has a name of its own: it was chosen, and may be chosen anew."""
    if not isinstance(outer, ast.Module) or not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    return not any(isinstance(part, ast.Call | ast.Dict) for part in ast.walk(node))


def _is_no_number(node: ast.expr) -> bool:
    """A text, a list, or the name of a type."""
    if isinstance(node, ast.Name):
        return node.id in ("str", "int", "float", "bool", "None") or (
            node.id[0].isupper() and node.id.upper() != node.id
        )
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, int | float)
    if isinstance(node, ast.BinOp):
        return _is_no_number(node.left) or _is_no_number(node.right)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)

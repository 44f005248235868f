"""ES modules joined into the one text that a Streamlit component and a file can carry.

The sources are real ES modules: each says what it imports, an editor follows the names, a type checker reads them.
A component travels as a single text, though, and installing or running VizFormer needs no node: so the modules are
joined here, in the order in which they need each other, without their import lines, the word `export` and the comments.
All of them then share one scope, so a name may be declared at the top level of only one of them.

What is understood is a small part of the language, and anything else is refused:

    import { name, other } from "./file.js";            before everything else; braces may span lines
    export function name(…) {…}                         likewise async function, class, const, let
    export default function name(…) {…}                 once, in the module that is the component

At the top level, that is at the beginning of a line, stand only these, comments, and declarations without `export`.
A comment has its lines for itself, or is a type for what follows it: `/** @type {Name} */ (value)`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r'import \{\s*(\w+(?:,\s+\w+)*),?\s*\} from "(\.\.?/[\w./]+\.js)";', re.ASCII)
_DECLARATION = re.compile(
    r"(?P<export>export (?P<default>default )?)?"
    r"(?:(?:async )?function\*? (?P<function>\w+)\(|class (?P<class>\w+)\b|(?:const|let) (?P<names>\w+|\[[\w, ]+\]) =)",
    re.ASCII,
)
_COMMENT_LINES = re.compile(r"^[ \t]*(?://.*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)
_TYPE = re.compile(r"/\*\* @(?:[^*]|\*(?!/))*\*/ ?")
_CONTINUED = ("}", "]", ")")


class BundleError(ValueError):
    """A module that is not written in the way this file understands, or that does not fit the others."""


@dataclass(frozen=True)
class Module:
    """One source file.

    `declared` are all names at its top level, `default` that of its `export default function` ("" where there is none),
    and `body` its text without imports, exports and comments.
    """

    path: Path
    imports: tuple[tuple[Path, tuple[str, ...]], ...]
    exports: tuple[str, ...]
    declared: tuple[str, ...]
    default: str
    body: str


@cache
def bundle(entry: Path, *beside: Path) -> str:
    """The module `entry`, whose default export is the component, and all that it needs, as one ES module.

    `beside`: modules that stand before it, which it does not import.

    Raises:
        BundleError: a line outside the grammar above, a name that the other module does not export, modules that
            import each other in a circle, a name declared in two modules, or an entry without a default export.
    """
    done: dict[Path, Module] = {}
    modules = [one for path in (*beside, entry) for one in _in_order(path.resolve(), done, ())]
    owners: dict[str, Module] = {}
    for module in modules:
        for name in module.declared:
            if name in owners:
                raise BundleError(f"{owners[name].path.name} and {module.path.name} both declare {name}")
            owners[name] = module
    if not modules[-1].default:
        raise BundleError(f"{entry.name} has no export default function")
    if other := [module.path.name for module in modules[:-1] if module.default]:
        raise BundleError(f"{other[0]} has an export default function, and is not the component itself")
    return "\n".join(f"// {module.path.name}\n{module.body}" for module in modules)


def _in_order(path: Path, done: dict[Path, Module], above: tuple[Path, ...]) -> Iterator[Module]:
    """The modules that `path` needs, each after those that it needs itself, then that of `path`."""
    if path in above:
        circle = " -> ".join(one.name for one in (*above[above.index(path) :], path))
        raise BundleError(f"modules import each other in a circle: {circle}")
    if path in done:
        return
    module = read_module(path)
    for other, names in module.imports:
        yield from _in_order(other, done, (*above, path))
        for name in names:
            if name not in done[other].exports:
                raise BundleError(f"{path.name} imports {name}, which {other.name} does not export")
    done[path] = module
    yield module


def read_module(path: Path) -> Module:
    """Reads one source file by the grammar above."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BundleError(f"{path.name} is imported, and is not there") from None
    text = _TYPE.sub("", _COMMENT_LINES.sub("", text)).replace("\r\n", "\n").strip() + "\n"
    imports = []
    while found := _IMPORT.match(text):
        imports.append(((path.parent / found[2]).resolve(), tuple(re.split(r",\s+", found[1]))))
        text = text[found.end() :].lstrip()
    exports, declared, default, lines = [], [], "", []
    for line in text.splitlines():
        if line.count("`") % 2:
            raise BundleError(f"{path.name}: a text in backticks does not end on its line: {line.strip()}")
        if line and not line[0].isspace() and not line.startswith(_CONTINUED):
            said = _DECLARATION.match(line)
            if said is None:
                raise BundleError(f"{path.name}: not a declaration, or an import that is not understood: {line}")
            names = re.findall(r"\w+", said["function"] or said["class"] or said["names"])
            declared += names
            if said["default"] is not None:
                if default or not said["function"]:
                    raise BundleError(f"{path.name}: one function is the default export: {line}")
                default = names[0]
            elif said["export"] is not None:
                exports += names
                line = line[len(said["export"]) :]
        if line:
            lines.append(line)
    return Module(path, tuple(imports), tuple(exports), tuple(declared), default, "\n".join(lines) + "\n")

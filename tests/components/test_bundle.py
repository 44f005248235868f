"""ES modules joined into one text: what the browser gets is what the sources say, and slips are refused by name."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from vizformer import components
from vizformer.components._bundle import BundleError, bundle, read_module

FOLDER = Path(components.__file__).parent
ENTRIES = sorted(FOLDER.glob("*.js"))
SOURCES = sorted(FOLDER.rglob("*.js"))

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes modules, and names the first one."""

    def write(**files: str) -> Path:
        for name, text in files.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(files))}.js"

    return write


ENTRY = "export default function view() {\n}\n"
IMPORTING = 'import { a } from "./a.js";\n' + ENTRY


def test_modules_stand_in_the_order_in_which_they_need_each_other(write: Write) -> None:
    entry = write(
        view='import { b } from "./b.js";\nimport { a } from "./a.js";\n\n' + ENTRY,
        a="export function a() {\n}\n",
        b='import {\n  a,\n  c,\n} from "./a.js";\n\nexport const b = [a, c];\n',
    )
    entry.with_name("a.js").write_text("export function a() {\n}\n\nexport const c = 1;\n")
    assert bundle(entry) == (
        "// a.js\nfunction a() {\n}\nconst c = 1;\n\n// b.js\nconst b = [a, c];\n\n// view.js\n" + ENTRY
    )


def test_comments_and_types_do_not_travel(write: Write) -> None:
    entry = write(
        view="// @ts-check\n/**\n * @param {number} x\n */\nexport default function view(x) {\n  // why\n"
        "  const y = /** @type {HTMLElement} */ (x);\n  /** @type {number} */ let z;\n"
        '  return "// no /* comment */";\n}\n'
    )
    assert bundle(entry) == (
        "// view.js\nexport default function view(x) {\n  const y = (x);\n  let z;\n"
        '  return "// no /* comment */";\n}\n'
    )


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (dict(view=IMPORTING, a="export const b = 1;\n"), "imports a, which a.js does not"),
        (dict(view=IMPORTING, a="const a = 1;\n"), "imports a, which a.js does not"),
        (dict(view=IMPORTING), "a.js is imported, and is not there"),
        (
            dict(
                view=IMPORTING,
                a='import { b } from "./b.js";\nexport const a = b;\n',
                b='import { a } from "./a.js";\nexport const b = a;\n',
            ),
            "in a circle: a.js -> b.js -> a.js",
        ),
        (
            dict(
                view='import { a } from "./a.js";\nfunction help() {\n}\n' + ENTRY,
                a="class help {\n}\nexport const a = 1;\n",
            ),
            "a.js and view.js both declare help",
        ),
        (
            dict(view=IMPORTING + "const [x, y] = [a, a];\n", a="export let [a, y] = [1, 2];\n"),
            "a.js and view.js both declare y",
        ),
        (dict(view="export function view() {\n}\n"), "view.js has no export default"),
        (dict(view=ENTRY + ENTRY.replace("view", "other")), "one function is the default export"),
        (dict(view="export default class View {\n}\n"), "one function is the default export"),
        (
            dict(view=IMPORTING, a="export const a = 1;\nexport default function b() {\n}\n"),
            "a.js has an export default function",
        ),
    ],
)
def test_modules_that_do_not_fit_each_other_are_refused(write: Write, files: dict[str, str], said: str) -> None:
    with pytest.raises(BundleError, match=re.escape(said)):
        bundle(write(**files))


@pytest.mark.parametrize(
    "line",
    [
        'import a from "./a.js";',
        'import * as a from "./a.js";',
        'import { a as b } from "./a.js";',
        'import { a } from "https://example.org/a.js";',
        'import { a } from "a";',
        "import { a } from './a.js';",
        'import "./a.js";',
        "export { view };",
        "export * from './a.js';",
        "var a = 1;",
        "view();",
        "window.a = 1;",
        "if (true) view();",
    ],
)
def test_a_line_that_is_not_understood_is_refused_and_not_guessed_at(write: Write, line: str) -> None:
    for text in (f"{line}\n{ENTRY}", f"{ENTRY}{line}\n"):
        with pytest.raises(BundleError, match=re.escape(line)):
            bundle(write(view=text, a="export const a = 1;\n"))


def test_an_import_after_a_declaration_is_refused(write: Write) -> None:
    with pytest.raises(BundleError, match="an import that is not understood"):
        bundle(write(view=ENTRY + 'import { a } from "./a.js";\n', a="export const a = 1;\n"))


def test_a_text_over_several_lines_is_refused(write: Write) -> None:
    # What looks like a comment in it would be taken out.
    with pytest.raises(BundleError, match="does not end on its line"):
        bundle(write(view="const a = `\n// text\n`;\n" + ENTRY))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.stem)
def test_every_component_is_one_module_without_imports(entry: Path) -> None:
    text = bundle(entry)
    assert re.findall(r"^(?:import|export)\b[^(]*", text, re.M) == [f"export default function {entry.stem}"]
    assert "/**" not in text


def test_nothing_is_exported_that_nobody_imports_and_no_file_lies_unused() -> None:
    modules = [read_module(path.resolve()) for path in SOURCES]
    imported = {(path, name) for module in modules for path, names in module.imports for name in names}
    python = FOLDER / "js" / "outside.js"
    for module in (one for one in modules if one.path != python):  # (whose functions page.html and _mount.py call)
        assert [name for name in module.exports if (module.path, name) not in imported] == [], module.path.name
        assert module.default or any(module.path == path for path, _ in imported), module.path.name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_source_is_type_checked_without_exceptions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("// @ts-check\n")
    assert "@ts-ignore" not in text
    assert "@ts-expect-error" not in text
    assert "@ts-nocheck" not in text


@pytest.mark.browser
def test_the_sources_are_modules_that_a_browser_loads_as_they_are(browser: Browser) -> None:
    page = browser.new_page()

    def answer(route: Route) -> None:
        path = FOLDER / route.request.url.removeprefix("http://modules.test/")
        if path.suffix == ".js":
            route.fulfill(content_type="text/javascript", body=path.read_text("utf-8"))
        else:
            route.fulfill(content_type="text/html", body="")

    page.route("http://modules.test/**", answer)
    page.goto("http://modules.test/")
    for entry in ENTRIES:
        kind = page.evaluate("async (url) => (await import(url)).default.name", f"http://modules.test/{entry.name}")
        assert kind == entry.stem
    page.close()

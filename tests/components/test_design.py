"""The styles keep to docs/design-system.md: one scale of letters, one step of space, colours by their names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHEETS = sorted([*(ROOT / "vizformer" / "components").glob("*.css"), ROOT / "assets" / "app.css"])
DESIGN = (ROOT / "docs" / "design-system.md").read_text(encoding="utf-8")
SCALE = {12, 14, 16, 18, 20}
FITTED = ("cqi", "em", "var(", "!important")  # letters that follow their cell, their formula, or the layout of a canvas


def declared(sheet: Path, names: str) -> list[tuple[str, str]]:
    """The declarations of a style sheet whose properties match, each with what it says."""
    text = re.sub(r"/\*.*?\*/|url\('[^']*'\)", "", sheet.read_text(encoding="utf-8"), flags=re.S)
    return re.findall(rf"(?<![\w-])({names}): ?([^;}}]+)", text)


def pixels(said: str) -> list[float]:
    return [float(n) * (16 if unit == "rem" else 1) for n, unit in re.findall(r"(?<![\w.])-?([\d.]+)(rem|px)\b", said)]


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_letters_have_the_sizes_of_the_scale(sheet: Path) -> None:
    for name, said in declared(sheet, "font-size"):
        if not any(word in said.replace("rem", "") for word in FITTED):
            assert set(pixels(said)) <= SCALE, f"{name}: {said}"


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_spaces_are_steps_of_four_pixels_or_hairlines(sheet: Path) -> None:
    for name, said in declared(sheet, r"(?:row-|column-)?gap|padding[a-z-]*|margin[a-z-]*"):
        assert all(size <= 2 or size % 4 == 0 for size in pixels(said)), f"{name}: {said}"


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_a_component_calls_colours_by_their_names(sheet: Path) -> None:
    if sheet.name in ("app.css", "outside.css"):
        return  # they give colours to what is Streamlit's, and what it calls by name, for both themes
    for name, said in declared(sheet, r"[\w-]+"):
        found = re.findall(r"#[0-9a-f]{6}\b", said)
        assert not found or name.startswith("--vf-"), f"{name}: {said}"


def test_the_document_lists_the_scale_and_every_variable_of_the_frame() -> None:
    assert {int(size) for size in re.findall(r"^\| (\d+) px", DESIGN, re.M)} == SCALE
    head = (ROOT / "assets" / "app.css").read_text(encoding="utf-8").split("}")[0]
    assert set(re.findall(r"--vf-[a-z]+(?=:)", head)) <= set(re.findall(r"--vf-[a-z]+", DESIGN))
    hues = re.findall(r"(--vf-\w+): (#\w{6});", (ROOT / "vizformer" / "components" / "common.css").read_text("utf-8"))
    assert len(hues) == 5
    assert all(f"`{name}` {colour}" in DESIGN for name, colour in hues)

"""Every asset that was made by a command can be made again: the commands are there, and are listed where one looks."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "recipes" / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"python -m (recipes(?:\.[a-z_]+)+)")


def commands() -> set[str]:
    """The modules of `recipes` that can be run."""
    run = [path for path in (ROOT / "recipes").rglob("*.py") if 'if __name__ == "__main__":' in path.read_text("utf-8")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in run}


def test_the_table_lists_every_recipe_and_no_other_one() -> None:
    assert set(COMMAND.findall(TABLE)) == commands()


def test_every_command_that_is_said_of_an_asset_or_on_a_page_is_a_recipe() -> None:
    places = [*ROOT.glob("assets/**/*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "vizformer").rglob("*.py")]
    said = {name for path in places for name in COMMAND.findall(path.read_text(encoding="utf-8"))}
    assert len(said) > 8
    assert said <= commands()
    cards = [path for path in places if "python -m vizformer.training" in path.read_text(encoding="utf-8")]
    assert {path.name for path in cards} <= {"worker.py"}  # which the server starts


def test_the_file_or_folder_that_a_recipe_writes_is_bundled() -> None:
    written = re.findall(r"assets/[\w./-]+", TABLE)
    assert len(written) > 12
    assert [path for path in written if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", sorted(commands() - {"recipes.config_defaults"}))  # which takes none
def test_a_recipe_without_its_arguments_says_how_it_is_used(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    said = f"{ended.value} {capsys.readouterr().err}"
    assert f"python -m {name}" in said or "usage:" in said.lower()

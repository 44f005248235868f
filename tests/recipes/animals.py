"""A corpus of animals in a row, for recipes that train a small translator."""

import random
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from recipes.bundled_models.zh_en import prepare


def animals_in_a_row(folder: Path, monkeypatch: pytest.MonkeyPatch, recipe_module: ModuleType) -> Path:
    """The file of the corpus; the recipe holds few of its sentences out."""
    names, rng = {"猫": "cat", "狗": "dog", "鱼": "fish", "鸟": "bird"}, random.Random(0)
    rows = {tuple(rng.choice(list(names)) for _ in range(rng.randint(2, 5))) for _ in range(120)}
    path = folder / "animals.tsv"
    lines = sorted(f"{' '.join(names[word] for word in row)}.\t{''.join(row)}。\tmade up" for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(
        recipe_module, "prepare", lambda recipe, file: prepare(replace(recipe, n_valid=12, n_test=16), file)
    )
    return path

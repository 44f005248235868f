"""The code with `transformers` that a page offers for a head: run on a folder, it finds the pattern of our trace."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from vizformer.checkpoints import load
from vizformer.explain.head_code import in_transformers


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("gpt2", "I have a cat."),
        ("llama", "I have a cat."),
        ("bert", "I have a cat. [SEP] 我有一只猫。"),
        ("marian", "I have a cat."),
        ("t5", "I have a cat."),
    ],
)
@pytest.mark.sample(2)
def test_the_code_finds_the_pattern_of_every_site(family: str, text: str, tmp_path: Path) -> None:
    folder = getattr(folders, family)(tmp_path)
    made = load(folder)
    trace = made.trace(text, target="a cat") if family in ("marian", "t5") else made.trace(text)
    ids = {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}
    found = made.segments(next(iter(trace.tokens.values())))
    rows = () if found is None else found[0].tolist()
    for site in trace.sites[:1] + trace.sites[-1:]:
        code = in_transformers(str(folder), ids, site, 1, segments=rows)
        assert "vizformer" not in code.replace(str(folder), "")
        exec(code, space := {})
        tiny.assert_close(space["pattern"], trace[site].pattern(1))

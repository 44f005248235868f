"""Running the code of steps as it stands on the page, from the model's own numbers."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from vizformer.explain import Step

IMPORTS = "import math, torch, torch.nn.functional as F"


def one_by_one(steps: Sequence[Step]) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Each step after its code has run on what the steps before have left; and the names that there are then."""
    scope: dict[str, Any] = {}
    exec(IMPORTS, scope)
    for step in steps:
        scope.update(step.inputs)
        with torch.inference_mode():
            exec(step.code, scope)
        yield step, scope


def run(steps: Sequence[Step]) -> dict[str, Any]:
    """The names that all steps together leave."""
    scope: dict[str, Any] = {}
    for __, left in one_by_one(steps):
        scope = left
    return scope

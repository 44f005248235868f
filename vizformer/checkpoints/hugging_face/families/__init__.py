"""The families of models that open: tables of relatives, and a file each for those that are like no other.

No file knows another; each hands out its `FAMILIES`.
"""

from importlib import import_module
from pkgutil import iter_modules

from vizformer.checkpoints.hugging_face.family import Family

# In what order pages name them; one that is not listed comes last.
_ORDER = (
    "GPT-2, BERT, RoBERTa, DistilBERT, LLaMA, Qwen2, Qwen3, OPT, Marian, BART, T5, StarCoder2, GPT, data2vec, MPNet, "
    "RoBERTa-PreLayerNorm, Longformer, XLM-RoBERTa-XL, ERNIE, Megatron-BERT, PLBART, MVP, Pegasus, Blenderbot, M2M-100"
)


def _place(family: Family) -> int:
    names = _ORDER.split(", ")
    return names.index(family.name) if family.name in names else len(names)


_FILES = (import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__))
FAMILIES: tuple[Family, ...] = tuple(sorted((family for file in _FILES for family in file.FAMILIES), key=_place))
NAMES: tuple[str, ...] = tuple(dict.fromkeys(family.name for family in FAMILIES))
BY_TYPE: dict[str, Family] = {kind: family for family in FAMILIES for kind in family.types}

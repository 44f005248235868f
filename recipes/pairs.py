"""Sentence pairs: reading them, and holding some out so that training has seen neither side."""

import random
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from vizformer.errors import VizformerError

MAX_GROUP = 8  # pairs; a larger web of translations of each other always stays in training


@dataclass(frozen=True)
class Pair:
    source: str
    target: str


@dataclass(frozen=True)
class Split:
    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]


def read_pairs(path: Path, *, source_column: int = 1, target_column: int = 0) -> list[Pair]:
    """Tab-separated lines in the Tatoeba/Anki layout: English, other language, attribution.

    Raises:
        VizformerError: no such file, not UTF-8, or a line with too few columns.
    """
    if not path.is_file():
        raise VizformerError("There is no file {path}. Give the path of a tab-separated file.", path=str(path))
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise VizformerError("{path} is not UTF-8 text. Save it as UTF-8 and try again.", path=path.name) from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) <= max(source_column, target_column):
            raise VizformerError(
                "{path}, line {number}: {found} columns where at least {needed} are needed, separated by tabs.",
                path=path.name,
                number=number,
                found=len(columns),
                needed=max(source_column, target_column) + 1,
            )
        pairs.append(Pair(columns[source_column].strip(), columns[target_column].strip()))
    return list(dict.fromkeys(pair for pair in pairs if pair.source and pair.target))


def sentence_key(text: str) -> str:
    """Sentences that differ only in case, width, punctuation or spaces count as the same sentence."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def split_pairs(pairs: list[Pair], *, n_valid: int, n_test: int, seed: int) -> Split:
    """Holds out whole groups of pairs that share a source or a target sentence, directly or through others.

    So no source and no target sentence of the held-out parts occurs in training (see `sentence_key`).
    """
    groups = _groups(pairs)
    random.Random(seed).shuffle(groups)
    parts: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for group in groups:
        if len(group) > MAX_GROUP:
            part = "train"
        else:
            part = "test" if len(parts["test"]) < n_test else "valid" if len(parts["valid"]) < n_valid else "train"
        parts[part] += group
    return Split(tuple(parts["train"]), tuple(parts["valid"]), tuple(parts["test"]))


def _groups(pairs: list[Pair]) -> list[list[Pair]]:
    """Connected components of the graph whose nodes are sentences and whose edges are pairs (union-find)."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    nodes = [(("source", sentence_key(p.source)), ("target", sentence_key(p.target))) for p in pairs]
    for source, target in nodes:
        parent[root(source)] = root(target)
    members = defaultdict(list)
    for pair, (source, _) in zip(pairs, nodes, strict=True):
        members[root(source)].append(pair)
    return list(members.values())

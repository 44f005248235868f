"""The table by which SentencePiece replaces characters before it splits a text, checked before anything walks in it.

`precompiled_charsmap` is the size of a trie (4 bytes), the trie, and the replacements, each ended by a zero byte.  The
trie is a double array of 4-byte units; the `tokenizers` library follows it without looking whether a step leads out of
the array, and a file that was damaged there would end in a panic at some later text.

Source: the formats of sentencepiece (normalizer.cc) and darts-clone.
"""

import numpy as np

from vizformer.checkpoints.tokenizers.protobuf import WireError

LIMIT = 2**21  # bytes; SentencePiece's own tables have 240,000
_AT_ONCE = 2**12  # nodes of the trie


def check_charsmap(blob: bytes) -> None:
    """Walks every path of the trie once.

    Raises:
        WireError: a step that leads out of the array, a replacement that is none.
    """
    if len(blob) > LIMIT:
        raise WireError(f"precompiled_charsmap has {len(blob):,} bytes; at most {LIMIT:,} are read")
    size = int.from_bytes(blob[:4], "little")
    if len(blob) < 8 or size % 4 or not 4 <= size <= len(blob) - 4:
        raise WireError("precompiled_charsmap is cut off")
    units = np.frombuffer(blob, "<u4", size // 4, 4).astype(np.int64)
    texts = blob[4 + size :]
    try:
        texts.decode()
    except UnicodeDecodeError as error:
        raise WireError("precompiled_charsmap holds replacements that are no UTF-8") from error
    replacements = _reachable(units)
    starts = {0, *(place + 1 for place, byte in enumerate(texts) if byte == 0)}
    # The library reads from any place to the next zero byte: the place must begin a character.
    wrong = [r for r in replacements.tolist() if r >= len(texts) or (r not in starts and texts[r] & 0xC0 == 0x80)]
    if wrong:
        raise WireError(f"precompiled_charsmap has no replacement at {wrong[0]}")


def _reachable(units: np.ndarray) -> np.ndarray:
    """The values of all leaves that a text can lead to."""
    labels = units & 0x8000_00FF
    offsets = (units >> 10) << ((units & (1 << 9)) >> 6)
    first = offsets[0]
    seen = np.zeros(len(units), dtype=bool)
    values: list[np.ndarray] = []
    waiting = [np.array([first])]
    letters = np.arange(1, 256)
    while waiting:
        bases = waiting.pop()
        if len(bases) > _AT_ONCE:  # each takes 255 steps
            waiting.append(bases[_AT_ONCE:])
            bases = bases[:_AT_ONCE]
        steps = (bases[:, None] ^ letters[None, :]).ravel()
        if int(steps.max()) >= len(units):
            raise WireError("precompiled_charsmap has a step that leads out of it")
        wanted = np.tile(letters, len(bases))
        nodes = np.unique(steps[labels[steps] == wanted])
        nodes = nodes[~seen[nodes]]
        seen[nodes] = True
        bases = nodes ^ offsets[nodes]
        leaves = bases[(units[nodes] >> 8) & 1 == 1]
        if len(bases) and int(bases.max()) >= len(units):
            raise WireError("precompiled_charsmap has a step that leads out of it")
        values.append(units[leaves] & 0x7FFF_FFFF)
        if len(bases):
            waiting.append(bases)
    return np.concatenate(values) if values else np.zeros(0, dtype=np.int64)

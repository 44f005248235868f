"""A laboratory of the lesson Tokens and embeddings: BPE merge by merge, applied to the sentence or learned from words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import streamlit as st

from vizformer.components import listing
from vizformer.explain.snippets import Given
from vizformer.text import schemes
from vizformer.text.schemes import Applied, Learned, Pair, Word
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts

lab = Laboratory("tokens", "merges")
MODES = ("apply", "learn", "paper")
MERGES = 40  # steps of learning that are shown
CHOICES = 4  # pairs that a question offers
AROUND = 4  # merges above and below the current one in the table
WORDS = 80  # that are shown symbol by symbol
LEARN = """counts = Counter(pair for word, times in words.items() for pair in pairwise(word) for _ in range(times))
pair = max(counts, key=counts.get)"""
APPLY = """pairs = [pair for word in words for pair in pairwise(word) if pair in ranks]
pair = min(pairs, key=ranks.get, default=None)"""
REPEATS = "他说他说过他说的话。"  # a sentence from which something can be learned
Counted = Sequence[tuple[Word, int]]  # words, and how often each occurs


@cached
def applied(text: str) -> tuple[tuple[Word, ...], tuple[Applied, ...]]:
    """The words of the text as characters, and the merges of the bundled table one by one."""
    words = schemes.words_of(text)
    return words, schemes.apply(words, *schemes.bundled_table())


@cached
def learned(text: str) -> tuple[Counted, tuple[Learned, ...]]:
    """Words with how often they occur, and what BPE learns from them; an empty text stands for the paper's words."""
    words = Counter(schemes.words_of(text)) if text else schemes.PAPER
    return tuple(words.items()), schemes.learn(words, MERGES)


@cached
def next_counts(text: str, step: int) -> tuple[tuple[Pair, int], ...]:
    """The pairs of neighbours before merge `step`, most frequent first."""
    words, steps = learned(text)
    if step < len(steps):
        return steps[step].counts
    return tuple(schemes.pair_counts(steps[-1].words if steps else words).most_common())


@lab.draws
def draw_merges(subject: Subject) -> None:
    st.html(listing.style())
    with controls():
        mode = lab.buttons("merge", MODES)
        text = subject.text if mode != "paper" else ""
        steps: Sequence[Applied | Learned] = (applied if mode == "apply" else learned)(text)[1]
        # Where a link names more merges than there are, none is done.
        step = lab.slider("step", 0, len(steps), 0) if steps else 0
    lesson.ask(merges_question(subject, mode), folded=True)  # first: the table below gives it away
    if mode == "apply":
        _cut(text, step)
    else:
        _learn(text, step)


@lab.asks("merge")
def merges_question(subject: Subject, mode: str = "apply") -> lesson.Choice | None:
    text = subject.text if mode != "paper" else ""
    if not (steps := applied(text)[1] if mode == "apply" else learned(text)[1]):
        return None
    words = applied(text)[0] if mode == "apply" else [word for word, __ in learned(text)[0]]
    first, standing = steps[0], list(dict.fromkeys(pair for word in words for pair in pairwise(word)))
    if isinstance(first, Applied):
        merged, n = [step.pair for step in steps], f"{first.rank + 1:,}"
        others = [pair for pair in merged if pair in standing] + [pair for pair in standing if pair not in merged]
    else:
        n = str(first.counts[0][1])
        others = [pair for pair, count in first.counts if count < first.counts[0][1]]
    wrong = [pair for pair in dict.fromkeys(others) if pair != first.pair][: CHOICES - 1]
    if not wrong:
        return None
    choices = sorted([first.pair, *wrong], key=standing.index)
    answer = choices.index(first.pair)
    form, (left, right) = "apply" if mode == "apply" else "learn", map(_spaced, first.pair)
    values = {"form": form, "left": left, "right": right, "n": n}
    mistakes = [
        lab.mistake("merge", "earlier" if index < answer else "later", index, **values)
        for index in range(len(choices))
        if index != answer
    ]
    said = lab.asked("merge", form, text, wrong=mistakes, **values)
    return lesson.Choice(choices=[_joined(pair) for pair in choices], answer=answer, **said)


def _cut(text: str, step: int) -> None:
    """The sentence after some merges of the bundled table, and these merges."""
    characters, steps = applied(text)
    now = steps[step - 1].words if step else characters
    _show_words([(word, 1) for word in now], steps[step - 1].pair if step else ())
    first = max(0, min(step - 1 - AROUND, len(steps) - 2 * AROUND - 1))
    rows: list[list[listing.Cell]] = [
        [str(i + 1), _joined(s.pair), _spaced("".join(s.pair)), s.rank, s.count or 0]
        for i, s in list(enumerate(steps))[first : first + 2 * AROUND + 1]
    ]
    if rows:
        st.html(
            listing.to_html(
                _head("merge", "pair", "becomes", "rank", "count"), rows, chosen=step - 1 - first if step else None
            )
        )
    lab.say("after", symbols=counts.symbols(sum(map(len, now))), step=step, steps=len(steps))
    live = rf"\min_{{(a,b)}} \mathrm{{rank}}(a, b) = {steps[step - 1].rank:,}".replace(",", r"\,") if step else ""
    lesson.formula(r"(a^*, b^*) = \arg\min_{(a,b)} \mathrm{rank}(a, b)", live=live)
    if steps:
        found = steps[max(step, 1) - 1]  # the merge of the formula, or the first one
        before = steps[step - 2].words if step > 1 else characters
        kept = _few([(word, 1) for word in before], found.pair)
        ranks = {s.pair: s.rank for s in steps if s.rank >= found.rank}
        _python(APPLY, {"words": [word for word, __ in kept], "ranks": ranks}, len(before))


def _learn(text: str, step: int) -> None:
    """The words after some merges that were learned from them, the pairs that are there now, and the table so far."""
    characters, steps = learned(text)
    now, pairs = steps[step - 1].words if step else characters, next_counts(text, step)
    _show_words(now, steps[step - 1].pair if step else ())
    if step == len(steps):
        st.info(lab.text("end", text=REPEATS))
    elif pairs:
        (a, b), most = pairs[0]
        lesson.formula(
            r"(a^*, b^*) = \arg\max_{(a,b)} \mathrm{count}(a, b)",
            live=rf"\max_{{(a,b)}} \mathrm{{count}}(a, b) = {most}",
        )
        _python(LEARN, {"words": dict(_few(now, (a, b)))}, len(now))
        lab.say("next", left=_spaced(a), right=_spaced(b))
    if not pairs:
        return
    left, right = st.columns(2)
    rows: list[list[listing.Cell]] = [[_spaced(a), _spaced(b), n, n] for (a, b), n in pairs[: 2 * AROUND]]
    chosen, head = 0 if step < len(steps) else None, [*_head("left", "right", "times"), ""]
    left.html(listing.to_html(head, rows, bar=3, chosen=chosen, caption=lab.text("pairs")))
    done = list(enumerate(steps[:step], 1))[-2 * AROUND :]
    if done:
        rows = [[str(i), *map(_spaced, s.pair)] for i, s in done]
        head = _head("merge", "left", "right")
        right.html(listing.to_html(head, rows, chosen=len(rows) - 1, caption=lab.text("table")))


def _few(words: Counted, pair: Pair) -> list[tuple[Word, int]]:
    """The WORDS words that are shown; those that contain the pair come first."""
    if len(words) <= WORDS:
        return list(words)
    kept = sorted(range(len(words)), key=lambda i: pair not in pairwise(words[i][0]))
    return [words[i] for i in kept[:WORDS]]


def _python(code: str, given: Mapping[str, Given], count: int) -> None:
    """The lines that find the pair, with the words that they look through."""
    lab.note("python", form="space" if "▁" in str(given) else "plain")
    shown = len(given["words"])  # type: ignore[arg-type]
    note = "" if shown == count else f"# {lab.text('some', shown=shown, count=count)}\n"
    st.code(note + lesson.pasteable(code, given), language="python", wrap_lines=True)


def _show_words(found: Counted, new: Sequence[str]) -> None:
    words = [([_spaced(symbol) for symbol in word], times) for word, times in found[:WORDS]]
    st.html(listing.words_html(words, _spaced("".join(new))))
    if len(found) > WORDS:
        lab.note("first", shown=WORDS, count=len(found))


def _head(*names: str) -> list[str]:
    return lab.columns(*names)


def _joined(pair: Pair) -> str:
    return " + ".join(map(_spaced, pair))


def _spaced(symbol: str) -> str:
    return symbol.replace("▁", "␣")

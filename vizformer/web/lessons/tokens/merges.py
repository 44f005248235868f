"""BPE merge by merge, in the lesson Tokens and embeddings: a table of merges applied to the sentence, or learned."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import streamlit as st

from vizformer.components import cuts, listing
from vizformer.explain.snippets import Given
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts
from vizformer.web.words.i18n import _

W = TypeVar("W")
CHOICES = 4  # pairs that a question offers
AROUND = 4  # merges above and below the current one in the table
WORDS = 80  # that are shown symbol by symbol
LEARN = """counts = Counter(pair for word, times in words.items() for pair in pairwise(word) for _ in range(times))
pair = max(counts, key=counts.get)"""
APPLY = """pairs = [pair for word in words for pair in pairwise(word) if pair in ranks]
pair = min(pairs, key=ranks.get, default=None)"""
REPEATS = "他说他说过他说的话。"  # a sentence from which something can be learned


@laboratory
def merges(subject: Subject) -> None:
    """Applying the bundled table of merges to the sentence, or learning one from very little text."""
    st.html(cuts.style() + listing.style())
    modes = {
        "apply": _("Cut the sentence"),
        "learn": _("Learn from the sentence"),
        "paper": _("Learn from the paper's four words"),
    }
    st.segmented_control(
        _("What to watch"),
        list(modes),
        format_func=modes.__getitem__,
        required=True,
        **lesson.setting("tokens.merge", "apply", list(modes)),
    )
    mode = lesson.value("tokens.merge", "apply", list(modes))
    if mode == "apply":
        cut_step_by_step(subject)
    else:
        learn_step_by_step(subject if mode == "learn" else None)


def choose_step(count: int) -> int:
    """The slider over 0..count merges; none where the link names more than there are."""
    if not count:
        return 0
    st.slider(_("Merges done"), 0, count, **lesson.setting("tokens.step", 0, range(count + 1)))
    return lesson.value("tokens.step", 0, range(count + 1))


def cut_step_by_step(subject: Subject) -> None:
    from_characters, steps = computations.applied(subject.text)
    if steps:
        lesson.ask(first_question(subject.text))
    step = choose_step(len(steps))
    now = steps[step - 1].words if step else from_characters
    new = "".join(steps[step - 1].pair) if step else ""
    show_words([(word, 1) for word in now], new)
    symbols = sum(map(len, now))
    first = max(0, min(step - 1 - AROUND, len(steps) - 2 * AROUND - 1))
    rows: list[list[listing.Cell]] = [
        [str(i + 1), f"{spaced(s.pair[0])} + {spaced(s.pair[1])}", spaced("".join(s.pair)), s.rank, s.count or 0]
        for i, s in list(enumerate(steps))[first : first + 2 * AROUND + 1]
    ]
    if rows:
        head = [_("merge"), _("pair"), _("becomes"), _("rank"), _("count when learned")]
        st.html(listing.to_html(head, rows, chosen=step - 1 - first if step else None))
    st.text(_("{symbols} after {step} of {steps} merges", symbols=counts.symbols(symbols), step=step, steps=len(steps)))
    live = rf"\min_{{(a,b)}} \mathrm{{rank}}(a, b) = {steps[step - 1].rank:,}".replace(",", r"\,") if step else ""
    lesson.formula(r"(a^*, b^*) = \arg\min_{(a,b)} \mathrm{rank}(a, b)", live=live)
    if steps:
        found = steps[max(step, 1) - 1]  # the merge of the formula, or the first one
        before = steps[step - 2].words if step > 1 else from_characters
        kept = few(before, [found.pair in pairwise(word) for word in before])
        python(APPLY, {"words": kept, "ranks": {s.pair: s.rank for s in steps if s.rank >= found.rank}}, len(before))


def learn_step_by_step(subject: Subject | None) -> None:
    text = subject.text if subject is not None else ""
    from_characters, steps = computations.learned(text)
    if steps:
        lesson.ask(learned_question(text))
    step = choose_step(len(steps))
    now = steps[step - 1].words if step else from_characters
    new = "".join(steps[step - 1].pair) if step else ""
    show_words(now, new)
    counts = computations.next_counts(text, step)
    if step == len(steps):
        st.info(
            _(
                "No pair occurs twice any more: there is nothing left to learn. A text that repeats itself gives more, "
                "such as {text}",
                text=REPEATS,
            )
        )
    elif counts:
        (a, b), most = counts[0]
        lesson.formula(
            r"(a^*, b^*) = \arg\max_{(a,b)} \mathrm{count}(a, b)",
            live=rf"\max_{{(a,b)}} \mathrm{{count}}(a, b) = {most}",
        )
        kept = few(now, [(a, b) in pairwise(word) for word, __ in now])
        python(LEARN, {"words": dict(kept)}, len(now))
        st.text(_("Next: “{left}” and “{right}” become one symbol.", left=spaced(a), right=spaced(b)))
    rows: list[list[listing.Cell]] = [[spaced(a), spaced(b), n, n] for (a, b), n in counts[: 2 * AROUND]]
    if rows:
        left, right = st.columns(2)
        learnt: list[list[listing.Cell]] = [
            [str(i + 1), spaced(s.pair[0]), spaced(s.pair[1])] for i, s in list(enumerate(steps[:step]))[-2 * AROUND :]
        ]
        left.html(
            listing.to_html(
                [_("left symbol"), _("right symbol"), _("count"), ""],
                rows,
                bar=3,
                chosen=0 if step < len(steps) else None,
                caption=_("Pairs side by side now"),
            )
        )
        if learnt:
            right.html(
                listing.to_html(
                    [_("merge"), _("left symbol"), _("right symbol")],
                    learnt,
                    chosen=len(learnt) - 1,
                    caption=_("The table so far"),
                )
            )


def first_question(text: str) -> lesson.Choice | None:
    """Which pair of the sentence is joined first?"""
    words, steps = computations.applied(text)
    if not steps:
        return None
    merged, rank = [step.pair for step in steps], steps[0].rank
    (left, right), *later = merged
    standing = neighbouring(words)
    return pair_question(
        standing,
        (left, right),
        [pair for pair in later if pair in standing] + [pair for pair in standing if pair not in merged],
        _("The table of merges is applied to your sentence. Which of these pairs becomes one symbol first?"),
        _(
            "“{left}” and “{right}”: of all pairs in the sentence this one was learned first, as merge {rank}, since it was "
            "frequent in the text that the table was learned from. Where it stands in the sentence plays no part.",
            left=spaced(left),
            right=spaced(right),
            rank=f"{rank + 1:,}",
        ),
        f"apply {text}",
    )


def learned_question(text: str) -> lesson.Choice | None:
    """Which pair is learned first?"""
    counted, steps = computations.learned(text)
    if not steps:
        return None
    words, first = [word for word, __ in counted], steps[0]
    (left, right), most = first.counts[0]
    return pair_question(
        neighbouring(words),
        (left, right),
        [pair for pair, count in first.counts if count < most],
        _("BPE learns from these words alone. Which of these pairs does it join first?"),
        _(
            "“{left}” and “{right}” stand side by side {count} times; no other pair does so more often.",
            left=spaced(left),
            right=spaced(right),
            count=most,
        ),
        f"learn {text}",
    )


def neighbouring(words: Sequence[tuple[str, ...]]) -> list[tuple[str, str]]:
    """The pairs of neighbours, each once, in the order of the text."""
    return list(dict.fromkeys(pair for word in words for pair in pairwise(word)))


def pair_question(
    standing: list[tuple[str, str]],
    first: tuple[str, str],
    others: Sequence[tuple[str, str]],
    question: str,
    why: str,
    about: str,
) -> lesson.Choice | None:
    """The first pair among others, which are offered in the order of the text."""
    wrong = [pair for pair in dict.fromkeys(others) if pair != first][: CHOICES - 1]
    if not wrong:
        return None
    choices = sorted([first, *wrong], key=standing.index)
    return lesson.Choice(
        "tokens",
        "merge",
        question,
        [f"{spaced(left)} + {spaced(right)}" for left, right in choices],
        choices.index(first),
        why,
        about=about,
    )


def few(words: Sequence[W], found: Sequence[bool]) -> list[W]:
    """As many words as are shown, among them those in which the pair is found."""
    if len(words) <= WORDS:
        return list(words)
    return [words[i] for i in sorted(range(len(words)), key=lambda i: not found[i])[:WORDS]]


def python(code: str, given: Mapping[str, Given], count: int) -> None:
    """The lines that find the pair, with the words that they look through."""
    st.caption(_("The same in Python"))
    shown = len(given["words"])  # type: ignore[arg-type]
    note = "" if shown == count else "# " + _("{shown} of the {count} words", shown=shown, count=count) + "\n"
    st.code(note + lesson.pasteable(code, given), language="python", wrap_lines=True)


def show_words(found: Sequence[tuple[Sequence[str], int]], new: str) -> None:
    st.html(listing.words_html([([spaced(s) for s in word], times) for word, times in found[:WORDS]], spaced(new)))
    if len(found) > WORDS:
        st.caption(_("The first {shown} of {count} words.", shown=WORDS, count=len(found)))


def spaced(symbol: str) -> str:
    return symbol.replace("▁", "␣")

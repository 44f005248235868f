"""How the lesson Tokens and embeddings draws a cut sentence: under six tokenizers, and merge by merge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.components import cuts, listing
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computed
from vizformer.web.widgets import lesson
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.text.schemes import Piece

BYTES = 240  # of the text that are drawn
AROUND = 4  # merges above and below the current one in the table
WORDS = 80  # that are shown symbol by symbol
REPEATS = "他说他说过他说的话。"  # a sentence from which something can be learned


def scheme_names() -> dict[str, str]:
    return {
        "word": _("Words"),
        "character": _("Characters"),
        "bpe": "BPE",
        "wordpiece": "WordPiece",
        "unigram": "Unigram",
        "byte": _("Bytes"),
    }


@st.fragment
@guarded()
def pieces(subject: Subject) -> None:
    """The sentence under six schemes and under the model's own tokenizer, in step with its bytes."""
    config = model_cache.options(subject.model)
    found: dict[str, tuple[Piece, ...]] = {name: computed.cuts(name, subject.text) for name in computed.SCHEMES}
    sizes: dict[str, int] = {name: computed.vocabulary(name) for name in computed.SCHEMES}
    least = min(map(len, found.values()))
    found["own"], sizes["own"] = computed.own_cuts(subject.model, subject.text), config.input_vocab_size
    title = sources.title(subject.model)
    typed = computed.takes_ids(subject.model)
    own = _("Ids of {model}, as typed", model=title) if typed else _("The tokenizer of {model}", model=title)
    names = {**scheme_names(), "own": own}
    size = len(subject.text.encode())
    shown = 0
    for character in subject.text:  # no character is cut in two
        if shown + len(character.encode()) > BYTES:
            break
        shown += len(character.encode())
    st.html(cuts.style() + listing.style())
    st.html(
        cuts.to_html(
            [cuts.Row(names[name], counted(row), [cell(piece) for piece in row]) for name, row in found.items()],
            width=shown,
            label=_("The sentence under each tokenizer"),
        )
    )
    st.caption(
        _(
            "Hatched: unknown to the vocabulary, so the text is lost. Dotted on the left: continues a word. "
            "␣ is a space."
        )
    )
    if shown < size:
        st.caption(
            _(
                "The rows show the first {shown} of {size} bytes; what is counted is all of them.",
                shown=shown,
                size=size,
            )
        )
    ratio_question(subject, len(found["byte"]), len(found["character"]))
    rows: list[list[listing.Cell]] = [
        [
            names[name],
            len(row),
            len(row) ** 2,
            len(row) ** 2,
            (len(row) / least) ** 2 if least else 0.0,
            sizes[name],
            sizes[name] * config.d_model,
        ]
        for name, row in found.items()
    ]
    head = [
        _("tokenizer"),
        _("tokens n"),
        _("cells n²"),
        "",
        _("times the fewest"),
        _("vocabulary V"),
        _("numbers in E: V × {d_model}", d_model=config.d_model),
    ]
    st.html(listing.to_html(head, rows, bar=3))
    st.caption(_("Counted without the special tokens that a model puts around the text."))


def counted(row: "tuple[Piece, ...]") -> str:
    unknown = sum(piece.unknown for piece in row)
    if len(row) == 1:
        return _("1 token, unknown") if unknown else _("1 token")
    if unknown:
        return _("{n} tokens, {unknown} of them unknown", n=len(row), unknown=unknown)
    return _("{n} tokens", n=len(row))


def cell(piece: "Piece") -> cuts.Cut:
    hint = _("id {id}, vocabulary entry {piece}", id=piece.id, piece=piece.entry)
    continues = piece.entry.startswith("##") and len(piece.entry) > 2
    return cuts.Cut(piece.text, piece.start, piece.end, hint, piece.unknown, continues)


def ratio_question(subject: Subject, n_bytes: int, n_characters: int) -> None:
    """How many times as many cells an attention map has for bytes as for characters."""
    if not n_characters:
        return
    ratio = round((n_bytes / n_characters) ** 2, 1)
    ratios = sorted({1.0, 3.0, 9.0, 27.0, ratio})
    lesson.ask(
        "tokens",
        "pieces",
        _(
            "An attention map has a cell for every pair of tokens. A model that reads your sentence as bytes instead of "
            "characters: how many times as many cells?"
        ),
        [_("{ratio} times as many", ratio=f"{value:g}") if value != 1 else _("just as many") for value in ratios],
        ratios.index(ratio),
        _(
            "{bytes} bytes, {characters} characters: {bytes}² = {byte_cells} cells against {characters}² = {cells}. In "
            "UTF-8 a letter of English is 1 byte and a Chinese character is 3.",
            bytes=n_bytes,
            characters=n_characters,
            byte_cells=n_bytes**2,
            cells=n_characters**2,
        ),
        about=subject.text,
    )


# --- BPE merge by merge -----------------------------------------------------------------------------------------------


@st.fragment
@guarded()
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
        **lesson.dial("tokens.merge", "apply", list(modes)),
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
    st.slider(_("Merges done"), 0, count, **lesson.dial("tokens.step", 0, range(count + 1)))
    return lesson.value("tokens.step", 0, range(count + 1))


def cut_step_by_step(subject: Subject) -> None:
    from_characters, steps = computed.applied(subject.text)
    step = choose_step(len(steps))
    now = steps[step - 1].words if step else from_characters
    new = "".join(steps[step - 1].pair) if step else ""
    show_words([(word, 1) for word in now], new)
    symbols = sum(map(len, now))
    st.text(_("{n} symbols after {step} of {steps} merges", n=symbols, step=step, steps=len(steps)))
    first = max(0, min(step - 1 - AROUND, len(steps) - 2 * AROUND - 1))
    rows: list[list[listing.Cell]] = [
        [str(i + 1), f"{spaced(s.pair[0])} + {spaced(s.pair[1])}", spaced("".join(s.pair)), s.rank, s.count or 0]
        for i, s in list(enumerate(steps))[first : first + 2 * AROUND + 1]
    ]
    if rows:
        head = [_("merge"), _("pair"), _("becomes"), _("rank"), _("count when learned")]
        st.html(listing.to_html(head, rows, chosen=step - 1 - first if step else None))
    live = rf"\min_{{(a,b)}} \mathrm{{rank}}(a, b) = {steps[step - 1].rank:,}".replace(",", r"\,") if step else ""
    lesson.formula(r"(a^*, b^*) = \arg\min_{(a,b)} \mathrm{rank}(a, b)", live=live)
    python(computed.APPLY)


def learn_step_by_step(subject: Subject | None) -> None:
    text = subject.text if subject is not None else ""
    from_characters, steps = computed.learned(text)
    step = choose_step(len(steps))
    now = steps[step - 1].words if step else from_characters
    new = "".join(steps[step - 1].pair) if step else ""
    show_words(now, new)
    counts = computed.next_counts(text, step)
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
        python(computed.LEARN)
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


def python(code: str) -> None:
    st.caption(_("The same in Python"))
    st.code(code, language="python", wrap_lines=True)


def show_words(found: Sequence[tuple[Sequence[str], int]], new: str) -> None:
    st.html(listing.words_html([([spaced(s) for s in word], times) for word, times in found[:WORDS]], spaced(new)))
    if len(found) > WORDS:
        st.caption(_("The first {shown} of {count} words.", shown=WORDS, count=len(found)))


def spaced(symbol: str) -> str:
    return symbol.replace("▁", "␣")

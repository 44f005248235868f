"""What pages there are, in which order: another page is one `Entry`, listed in `DOORS`."""

import re
from dataclasses import dataclass

from vizformer.messages import N_, Message
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import translate
from vizformer.word_tables import words_of

_WORDS = words_of(__file__)

_NAMED = re.compile(r"@([a-z]+)(?:\.([a-z]+))?")


@dataclass(frozen=True, eq=False)  # one object a page
class Entry:
    """A page: its file, whose name is its address in every language; words.toml has its title, and says what it shows.

    `holds` are the fields of the view that its address holds, as the address calls them; all where none are named.
    A lesson says which lessons come before it (`after`, by their addresses).
    """

    file: str
    holds: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return self.file.rpartition("/")[2].removesuffix(".py")

    @property
    def title(self) -> Message:
        return Message(_WORDS[self.url]["title"])

    @property
    def door(self) -> Message:
        """The name of the page in the bar; its title, where it has no name of its own there."""
        return Message(_WORDS[self.url].get("door", _WORDS[self.url]["title"]))

    @property
    def heading(self) -> Message:
        """The heading of the page; its title, where it has no heading of its own."""
        return Message(_WORDS[self.url].get("heading", _WORDS[self.url]["title"]))

    @property
    def summary(self) -> Message:
        return Message(_WORDS[self.url]["summary"])


START = Entry("pages/learn/start.py", holds=("model", "text", "target", "edits", "slide", "lang"))
# No icons: `:material/...:` ones make the browser fetch a font from the internet, emoji need a font of the system's.
MAP = Entry("pages/learn/map.py")
TOKENS = Entry("pages/learn/tokens.py", after=("map",))
QKV = Entry("pages/learn/qkv.py", after=("tokens",))
HEADS = Entry("pages/learn/heads.py", after=("qkv",))
MASKS = Entry("pages/learn/masks.py", after=("qkv",))
POSITIONS = Entry("pages/learn/positions.py", after=("heads", "masks"))
BLOCK = Entry("pages/learn/block.py", after=("qkv",))
CROSS = Entry("pages/learn/cross.py", after=("heads", "masks"))
DECODING = Entry("pages/learn/decoding.py", after=("cross",))
TRAINING = Entry("pages/learn/training.py", after=("block", "decoding"))
COSTS = Entry("pages/learn/costs.py", after=("heads", "block"))
MIXERS = Entry("pages/learn/mixers.py", after=("masks", "costs"))
COURSE = (MAP, TOKENS, QKV, HEADS, MASKS, POSITIONS, BLOCK, CROSS, DECODING, TRAINING, COSTS, MIXERS)
"""The lessons, in the order in which they are taught: none uses a term of a later one without saying so."""

PATH = Entry("pages/learn/path.py", holds=("model", "text", "target", "part", "slide", "lang"))
LAYER = Entry("pages/learn/layer.py")
PAPER = Entry("pages/learn/paper.py")
COMPARE = Entry("pages/learn/compare.py")
WORKSHEET = Entry("pages/learn/worksheet.py")
TRAIN = Entry("pages/learn/train.py")
GLOSSARY = Entry("pages/learn/glossary.py")
ATTENTION = Entry("pages/explore/attention.py")

GENERATION = Entry("pages/explore/generation.py")
ELSEWHERE = Entry("pages/explore/elsewhere.py")
BLANKS = Entry("pages/explore/blanks.py")
LENS = Entry("pages/explore/lens.py")
WHAT_IF = Entry("pages/explore/what_if.py")
SIDE_BY_SIDE = Entry("pages/explore/side_by_side.py")
OPEN = Entry("pages/checkpoint/open.py")
REPORT = Entry("pages/checkpoint/report.py")
HEAD_REPORT = Entry("pages/checkpoint/head_report.py")

EXPLORE = Entry("pages/doors/explore.py")
TEACH = Entry("pages/doors/teach.py")
MODELS = Entry("pages/doors/models.py")
DOORS: dict[Entry, tuple[Entry, ...]] = {
    PATH: (*COURSE, PAPER, LAYER),
    EXPLORE: (ATTENTION, GENERATION, BLANKS, LENS, WHAT_IF, SIDE_BY_SIDE),
    TEACH: (WORKSHEET, COMPARE, TRAIN),
    MODELS: (OPEN, REPORT, HEAD_REPORT, ELSEWHERE),
}
"""The doors of the bar, each a page with tiles of the pages behind it."""

HELP = (GLOSSARY,)  # behind the question mark
READING_LIST, NOTATION_LIST = N_("Reading list"), N_("Notations")
LISTED, READING, NOTATIONS = "glossary.list", "reading", "notations"
"""The other parts of the glossary: their titles, and the setting of a link that shows them."""
PAGES = {
    entry.url: entry for entry in (START, *HELP, *(one for door, pages in DOORS.items() for one in (door, *pages)))
}
"""All pages by their addresses, in the order of the navigation."""
HOME = START
HOME_OF_BEFORE = ATTENTION  # when "/" was this page: links of then say something that only other pages show


def door_of(entry: Entry) -> Entry | None:
    """The door that a page is behind, or that it is."""
    return next((door for door, pages in DOORS.items() if entry is door or entry in pages), None)


def beside(entry: Entry) -> tuple[Entry, ...]:
    """The pages one press away from a page: the views of its door; of a lesson the path and its neighbours."""
    if entry in COURSE:
        at = COURSE.index(entry)
        return (PATH, *COURSE[max(at - 1, 0) : at], *COURSE[at + 1 : at + 2])
    if entry is PATH:
        return COURSE[:1]
    if entry is HOME:
        return (PATH,)
    groups = ((PAPER, LAYER), *(DOORS[door] for door in (EXPLORE, TEACH, MODELS)))
    return next((group for group in groups if entry in group), ())


# The numbers of lessons and parts. Texts say them as `@block`, the lesson's, and `@block.norm`, that of its part:
# 7.2.
def number(lesson: str, part: str = "") -> str:
    """The number of a lesson, by its address, or of a part of it."""
    of_lesson = str([entry.url for entry in COURSE].index(lesson) + 1)
    return f"{of_lesson}.{[*lesson_words.parts(lesson, SOURCE)].index(part) + 1}" if part else of_lesson


def numbered(text: str) -> str:
    """A text with the numbers in the place of the names."""
    return _NAMED.sub(lambda found: number(found[1], found[2] or ""), text)


def titled(lesson: Entry) -> str:
    """A lesson's number and title, in the reader's language."""
    return f"{number(lesson.url)} · {translate(lesson.title)}"

"""What pages there are, in which order: another page is one `Entry`, listed in `DOORS`."""

from dataclasses import dataclass

from vizformer.messages import N_, Message


@dataclass(frozen=True, eq=False)  # one object a page
class Entry:
    """A page: its file, whose name is its address in every language, its title and what it shows.

    `holds` are the fields of the view that its address holds, as the address calls them; all where none are named.
    A lesson says how many `minutes` it takes and which lessons come before it (`after`, by their addresses).
    """

    file: str
    title: Message
    summary: Message
    holds: tuple[str, ...] = ()
    minutes: int = 0
    after: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return self.file.rpartition("/")[2].removesuffix(".py")


START = Entry(
    "pages/learn/start.py",
    N_("Start here"),
    N_(
        "Type a sentence and watch it pass through a Transformer: every number is your model's own, and all can be checked."
    ),
    holds=("model", "text", "target", "edits", "slide", "lang"),
)
# No icons: `:material/...:` ones make the browser fetch a font from the internet, emoji need a font of the system's.
MAP = Entry(
    "pages/learn/map.py",
    N_("The map"),
    N_("The whole model as a drawing with the shapes of your sentence, and why it is not an RNN."),
    minutes=35,
)
TOKENS = Entry(
    "pages/learn/tokens.py",
    N_("Tokens and embeddings"),
    N_("From characters to ids to vectors: six ways to cut a sentence, and what the vectors know."),
    minutes=60,
    after=("map",),
)
QKV = Entry(
    "pages/learn/qkv.py",
    N_("Query, key, value"),
    N_("A look-up that is soft, and its arithmetic: every number of one head and one query, worked out and checked."),
    minutes=35,
    after=("tokens",),
)
HEADS = Entry(
    "pages/learn/heads.py",
    N_("Many heads"),
    N_("Split, attend, concatenate, mix: what each head adds, and what heads cost."),
    minutes=40,
    after=("qkv",),
)
MASKS = Entry(
    "pages/learn/masks.py",
    N_("Masks"),
    N_("Who may look at whom, and why a blocked cell is blocked; leakage measured."),
    minutes=40,
    after=("qkv",),
)
POSITIONS = Entry(
    "pages/learn/positions.py",
    N_("Positions"),
    N_("How a model that sees a set of tokens learns their order: waves, clocks, rotations, biases."),
    minutes=50,
    after=("heads", "masks"),
)
BLOCK = Entry(
    "pages/learn/block.py",
    N_("Add & norm, feed-forward"),
    N_("The rest of a layer: a running sum, a norm number by number, and a network that looks at one token at a time."),
    minutes=60,
    after=("qkv",),
)
CROSS = Entry(
    "pages/learn/cross.py",
    N_("Encoder meets decoder"),
    N_("Three attentions, one memory: how a translation looks back at its source, and what happens without."),
    minutes=40,
    after=("heads", "masks"),
)
DECODING = Entry(
    "pages/learn/decoding.py",
    N_("Writing a text"),
    N_("From probabilities to a text: shifted by one, one wrong token, ways of choosing, BLEU by hand, the KV cache."),
    minutes=40,
    after=("cross",),
)
TRAINING = Entry(
    "pages/learn/training.py",
    N_("Training"),
    N_("What a model learns from: the loss of your sentence, the learning rate, Adam, and what happens without."),
    minutes=70,
    after=("block", "decoding"),
)
COSTS = Entry(
    "pages/learn/costs.py",
    N_("Costs, variants, results"),
    N_("What attention costs, how it was made cheaper, what became of the model, and what it reached."),
    minutes=60,
    after=("heads", "block"),
)
ERRORS = Entry(
    "pages/learn/errors.py",
    N_("Find the error"),
    N_("Nine short programs with one wrong line each, as they are copied: find it, then see what it does."),
    minutes=45,
    after=("masks", "block", "training"),
)
MIXERS = Entry(
    "pages/learn/mixers.py",
    N_("After 2017"),
    N_("What models have in the place of the softmax over all tokens: sinks, latents, states, and what each costs."),
    minutes=30,
    after=("masks", "costs"),
)
COURSE = (MAP, TOKENS, QKV, HEADS, MASKS, POSITIONS, BLOCK, CROSS, DECODING, TRAINING, COSTS, ERRORS, MIXERS)
"""The lessons, in the order in which they are taught: none uses a term of a later one without saying so."""

PATH = Entry(
    "pages/learn/path.py",
    N_("The path"),
    N_("From your sentence to a prediction in twelve pictures: at each you predict, then see. About an hour."),
    holds=("model", "text", "target", "part", "slide", "lang"),
)
LAYER = Entry(
    "pages/learn/layer.py",
    N_("A layer by hand"),
    N_("Every matrix of a whole layer, for your sentence or for a toy that fits on paper."),
)
PAPER = Entry(
    "pages/learn/paper.py",
    N_("Worked examples"),
    N_("The classic small examples, to the last digit; change any number."),
)
COMPARE = Entry(
    "pages/learn/compare.py",
    N_("Check your own"),
    N_("The numbers of a Transformer that you wrote, against the model's: the first step that departs, and why."),
)
WORKSHEET = Entry(
    "pages/learn/worksheet.py",
    N_("Worksheet"),
    N_(
        "Calculations and questions of the lessons on paper, about your sentence: as many versions as students, and the key."
    ),
)
TRAIN = Entry(
    "pages/learn/train.py",
    N_("Train"),
    N_("A tiny Transformer learns while you watch; then drag through its training."),
)
GLOSSARY = Entry(
    "pages/learn/glossary.py",
    N_("Glossary"),
    N_("Every term of the course: its symbol, its shape, and what it is in a sentence."),
)
READING = Entry(
    "pages/learn/reading.py",
    N_("Reading list"),
    N_("The papers behind the course, and tutorials that are worth your time."),
)
ATTENTION = Entry(
    "pages/explore/attention.py",
    N_("Attention"),
    N_("Every attention head of a trained Transformer, for the sentence you type."),
)

GENERATION = Entry(
    "pages/explore/generation.py",
    N_("Generation"),
    N_("A text token by token: what each one is chosen from, where it looks, what it costs."),
)
ELSEWHERE = Entry(
    "pages/explore/elsewhere.py",
    N_("From other programs"),
    N_("Arrays of attention weights that another program saved, of text, images or proteins, in the same pictures."),
)
BLANKS = Entry(
    "pages/explore/blanks.py",
    N_("Fill in the blank"),
    N_("Hide a word: what does the model put in its place, and where does it look?"),
)
LENS = Entry(
    "pages/explore/lens.py",
    N_("Where does the answer come from?"),
    N_("After which layer it is there, which heads and networks add to it, and which input tokens it depends on."),
)
WHAT_IF = Entry(
    "pages/explore/what_if.py",
    N_("What if"),
    N_("Take parts out of the model, or put in the numbers of another prompt: what does the answer need?"),
)
SIDE_BY_SIDE = Entry(
    "pages/explore/side_by_side.py",
    N_("Side by side"),
    N_("Two models on one text, or one model on two: which heads look elsewhere, and which weights differ."),
)
OPEN = Entry(
    "pages/checkpoint/open.py",
    N_("Open your own"),
    N_("A folder, a file or a name of Hugging Face: every page then shows your model."),
)
REPORT = Entry(
    "pages/checkpoint/report.py",
    N_("Model report"),
    N_("What a model's files hold: its shapes, its numbers by part, and what became of every tensor."),
)
HEAD_REPORT = Entry(
    "pages/checkpoint/head_report.py",
    N_("What each head does"),
    N_("What every head of a model does, measured on hundreds of texts: where it looks, how evenly, which are alike."),
)

LEARN = Entry("pages/doors/learn.py", N_("Learn"), N_("The course: thirteen lessons, each built on those before it."))
EXPLORE = Entry(
    "pages/doors/explore.py", N_("Explore"), N_("One sentence, one model, one head, looked at in several ways.")
)
TEACH = Entry(
    "pages/doors/teach.py",
    N_("Teach"),
    N_("Lead a class, present a lesson, print a worksheet, check programs, train a small model."),
)
MODELS = Entry("pages/doors/models.py", N_("Models"), N_("Open a model of your own, and see what is in it."))
DOORS: dict[Entry, tuple[Entry, ...]] = {
    LEARN: (PATH, *COURSE, PAPER, LAYER),
    EXPLORE: (ATTENTION, GENERATION, BLANKS, LENS, WHAT_IF, SIDE_BY_SIDE),
    TEACH: (WORKSHEET, COMPARE, TRAIN),
    MODELS: (OPEN, REPORT, HEAD_REPORT, ELSEWHERE),
}
"""The doors of the bar, each with a page of its own, and the pages behind them."""

HELP = (GLOSSARY, READING)  # behind the question mark
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
    """The pages that are one press away from a page: the views of its door; of a lesson the path and its neighbours."""
    if entry in COURSE:
        at = COURSE.index(entry)
        return (PATH, *COURSE[max(at - 1, 0) : at], *COURSE[at + 1 : at + 2])
    if entry is PATH:
        return COURSE[:1]
    groups = (HELP, (PAPER, LAYER), *(DOORS[door] for door in (EXPLORE, TEACH, MODELS)))
    return next((group for group in groups if entry in group), ())

"""Words, formulas and code in which the steps of the two rules of a state differ."""

from collections.abc import Mapping
from dataclasses import dataclass

from vizformer.messages import N_, Message
from vizformer.options.attention import StateRule


@dataclass(frozen=True)
class StateWords:
    """Of one rule."""

    units: Mapping[str, tuple[Message, Message]]  # title and text of the queries and of the keys
    # left, read: texts of how much is kept, and of the reading
    left: Message
    written: tuple[Message, Message, str]  # title, text and formula of what is written
    # in_the_run, writes, map_code: PyTorch, of what each token before has written, of what the token `at` writes, and
    # of M
    in_the_run: str
    writes: str
    read: Message
    # read_formula, map_formula: LaTeX
    read_formula: str
    map_formula: str
    map_code: str
    # gate_title, gate_formula: of what is done before W_O; LaTeX with the bias of the gate in the place of BIAS
    gate_title: Message
    gate_formula: str


WORDS: Mapping[StateRule, StateWords] = {
    "delta": StateWords(
        {
            "q": (
                N_("Queries of length 1"),
                N_("Each query is divided by its length: only its direction says what is asked for."),
            ),
            "k": (
                N_("Keys of length 1"),
                N_(
                    "Each key is divided by its length: writing under it then replaces what it held, neither more nor less."
                ),
            ),
        },
        N_("A second gate: the share of the whole state that is left before the token is written; 1 forgets nothing."),
        (
            N_("Correct: the difference is what is written"),
            N_("Not the value itself, but what it is more than the answer, times β. A softmax has no such step."),
            r"u_i = \beta_i\,(v_i - r_i)",
        ),
        '(v[..., t, :] - torch.einsum("...kv,...k->...v", S, k[..., t, :]))',
        "(v[..., {at}, :] - held)",
        N_("The query asks the corrected state. It is compared with no key, and there is no softmax."),
        r"o_i = S_i^\top q_i / \sqrt{d_k}",
        r"M = \mathrm{tril}(Q K^\top \odot G)\,\big(I + \mathrm{stril}(\mathrm{diag}(\beta) K K^\top \odot G)\big)^{-1} "
        r"\mathrm{diag}(\beta)",
        """system = torch.eye({n}) + torch.tril(beta[..., None] * (k @ k.mT) * G, -1)
scores = {q} @ k.mT * {scale!r} * G{rows}
pattern = (torch.linalg.solve_triangular(system, scores, upper=False, left=False) * beta[..., None, :]){row}""",
        N_("Normalise, and through the gate"),
        r"z'_i = \frac{z_i}{\sqrt{\overline{z_i^2} + \epsilon}} \odot w \odot \mathrm{SiLU}(x_i\,W_\mathrm{gate}BIAS)",
    ),
    "space": StateWords(
        {
            "q": (
                N_("Queries"),
                N_("The first columns are the queries, called C in the paper: what the state is asked for."),
            ),
            "k": (
                N_("Keys"),
                N_(
                    "The next columns are the keys, called B in the paper: under which directions of the state a value is "
                    "written. Heads of a group have the same queries and keys."
                ),
            ),
        },
        N_("The share of the whole state that is left before the token is written: the larger the step, the less."),
        (
            N_("The value, times its step"),
            N_("Whatever the state holds under the key already, the value comes on top: nothing is corrected."),
            r"u_i = \Delta_i\,v_i",
        ),
        "v[..., t, :]",
        "v[..., {at}, :]",
        N_(
            "The query asks the state, and the token's own value is added once more, times D, a number that each head has "
            "learned. The query is compared with no key, and there is no softmax."
        ),
        r"o_i = S_i^\top q_i + D\,v_i",
        r"M = L \odot (Q K^\top)\,\mathrm{diag}(\Delta) + D\,I, \qquad L_{i,j} = a_{j+1} \cdots a_i",
        """pattern = ({q} @ k.mT * G{rows} * beta[..., None, :]){row}
pattern = pattern + {skip} * torch.eye({n}){rows}""",
        N_("Through the gate, and normalise"),
        r"z'_i = \frac{y_i}{\sqrt{\overline{y_i^2} + \epsilon}} \odot w, \qquad y_i = z_i \odot "
        r"\mathrm{SiLU}(x_i\,W_\mathrm{gate}BIAS)",
    ),
}

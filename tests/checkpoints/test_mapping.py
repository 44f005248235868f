"""Tensors mapped to roles by hand: their names say nothing any more, and the numbers are still those of the author."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.handmade_models import MODELS
from tests.parity.test_handmade_models import made, same
from vizformer import cli
from vizformer.checkpoints import UnansweredError, describe, inspect, load, propose_mapping
from vizformer.checkpoints.bare.mapping import proposal
from vizformer.checkpoints.opening import mapping_sheet
from vizformer.checkpoints.tensors import role_mapping
from vizformer.errors import CheckpointError

ROLES = {  # of norms that the reader asks about: whoever wrote the model knows
    "modern": {"final_norm.weight": "norm.weight"},
    "course": {
        "encoder.final_norm.weight": "encoder.norm.alpha",
        "encoder.final_norm.bias": "encoder.norm.bias",
        "decoder.final_norm.weight": "decoder.norm.alpha",
        "decoder.final_norm.bias": "decoder.norm.bias",
    },
    "one layer": {},
    "raw heads": {},
    "turned": {},
    "classifier": {},
    "one matrix for all heads": {},
    "gamma and beta": {},
}
ASKED = ("norm_place", "first_norm", "source_embedding")  # the mapping says so


def proposed(path: Path, name: str) -> dict[str, Any]:
    found = propose_mapping(path)
    tensors = {entry if isinstance(entry, str) else entry["tensor"] for entry in found["roles"].values()}
    more = {role: tensor for role, tensor in ROLES[name].items() if tensor not in tensors}
    return {**found, "roles": {**found["roles"], **more}}


def answers(name: str) -> dict[str, Any]:
    return {key: value for key, value in MODELS[name].answers.items() if key not in ASKED}


@pytest.mark.parametrize("name", ROLES)
def test_names_that_say_nothing(name: str, tmp_path: Path) -> None:
    """Every tensor is renamed by kind (t3.0.w), but for what its author's own norm is called, and mapped by hand."""
    model, path = made(name), tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    mapping = proposed(path, name)
    kinds = list(dict.fromkeys(e if isinstance(e, str) else e["tensor"] for e in mapping["roles"].values()))
    weights: dict[str, torch.Tensor] = {}
    new: dict[str, str] = {}
    for number, kind in enumerate(kinds):
        leaf = kind.rpartition(".")[2]
        last = leaf if leaf in ("weight", "bias", "gamma", "beta", "alpha") else "p"
        new[kind] = f"t{number}" + "".join(f".{mark}" for mark in re.findall(r"[#*]", kind)) + f".{last}"
        like = re.compile(re.escape(kind).replace(r"\#", r"(\d+)").replace(r"\*", r"(\d+)"))
        for tensor, values in model.state_dict().items():
            if (found := like.fullmatch(tensor)) is not None:
                numbers = iter(found.groups())
                weights[re.sub(r"[#*]", lambda __, n=numbers: next(n), new[kind])] = values
    roles = {
        role: new[entry] if isinstance(entry, str) else {**entry, "tensor": new[entry["tensor"]]}
        for role, entry in mapping["roles"].items()
    }
    buffers = {n: values for n, values in model.state_dict().items() if n.endswith("freqs_cis")}
    torch.save({**weights, **buffers}, path)
    with pytest.raises(CheckpointError):
        load(path, **answers(name))  # names that say nothing are refused, not guessed
    said = answers(name) | ({"qkv_rows": "q_k_v"} if any(".qkv." in role for role in roles) else {})  # no name says it
    same(load(path, mapping={"roles": roles}, **said), model, MODELS[name].output)


def test_a_file_beside_the_weights_is_read_by_itself(tmp_path: Path) -> None:
    model, path = made("turned"), tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    mapping = role_mapping.read({**proposed(path, "turned"), "answers": answers("turned")})
    (tmp_path / "model.pt.mapping.toml").write_text(mapping.to_toml())
    ours = load(path)
    same(ours, model, "logits")
    assert ours.report.mapping == mapping
    assert 'mapped by hand: "model.pt.mapping.toml" says the roles of 17 tensors' in describe(ours.report)
    assert {fate.name for fate in ours.report.tensors} == set(model.state_dict())
    same(load(path, mapping=tmp_path / "model.pt.mapping.toml"), model, "logits")
    with pytest.raises(UnansweredError):  # an empty one leaves that aside
        load(path, mapping={})


def test_rows_of_a_common_matrix_in_any_order(tmp_path: Path) -> None:
    model, path = made("fused, keys first"), tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    roles = propose_mapping(path)["roles"]
    fused = [role for role in roles if ".kqv." in role]
    tensors = {role: roles.pop(role) for role in fused}
    d = next(iter(v for k, v in model.state_dict().items() if k.endswith("kqv_proj.weight"))).shape[1]
    for role, tensor in tensors.items():
        for place, letter in enumerate("KQV"):
            part = {"tensor": tensor, "rows": [place * d, (place + 1) * d]}
            roles[role.replace(".kqv.", f".W_{letter}.")] = part
    said = {key: value for key, value in answers("fused, keys first").items() if key != "qkv_rows"}
    same(load(path, mapping=roles, **said), model, "logits")
    wrong = {role: entry for role, entry in roles.items() if ".W_V." not in role}
    with pytest.raises(CheckpointError, match=rf"row {2 * d} of .* has no role"):
        load(path, mapping=wrong, **said)


def test_a_wrong_mapping_says_all_of_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(made("fused").state_dict(), path)
    roles = propose_mapping(path)["roles"]
    roles["embedding.nothing"] = roles.pop("unembedding.weight")
    roles["final_norm.weight"] = "gone"
    roles["segment_embedding.weight"] = roles["layers.#.self_attention.W_O.weight"]
    with pytest.raises(CheckpointError) as refused:
        load(path, mapping=roles)
    for part in (
        '"embedding.nothing" is no role',
        '"gone" is not in the file',
        "# stands for the number of a layer",
        '"head.weight" has no role and is not left out',
        '"ln_f.weight" has no role and is not left out',
    ):
        assert part in str(refused.value)


def test_an_exchange_of_roles_changes_the_numbers_and_a_shape_that_cannot_fit_is_refused(tmp_path: Path) -> None:
    path, name = tmp_path / "model.pt", "raw heads"
    model = made(name)
    torch.save(model.state_dict(), path)
    roles = propose_mapping(path)["roles"]
    q, v = (f"layers.#.self_attention.W_{letter}.weight" for letter in "QV")
    exchanged = {**roles, q: roles[v], v: roles[q]}
    right, other = load(path, mapping=roles, **answers(name)), load(path, mapping=exchanged, **answers(name))
    assert not torch.allclose(right.trace(ids=[1, 2, 3]).logits, other.trace(ids=[1, 2, 3]).logits, atol=1e-3)
    inside, outside = "layers.#.feedforward.W_in.weight", "layers.#.feedforward.W_out.weight"
    with pytest.raises(CheckpointError):
        load(path, mapping={**roles, inside: roles[outside], outside: roles[inside]}, **answers(name))
    assert inspect(path, mapping=roles, **answers(name)).family == "hand-written"


def test_tensors_left_out_by_hand_are_said(tmp_path: Path) -> None:
    path, name = tmp_path / "model.pt", "fused"
    model = made(name)
    torch.save({**model.state_dict(), "projector.weight": torch.ones(3, 4)}, path)
    with pytest.raises(CheckpointError, match="projector"):
        load(path, **answers(name))
    ours = load(
        path, mapping={**propose_mapping_of(model, tmp_path), "left_out": ["projector.weight"]}, **answers(name)
    )
    same(ours, model, "logits")
    (left,) = ours.report.with_fate("unused")
    assert (left.name, str(left.note)) == ("projector.weight", "left out by hand")


def test_what_is_left_out_is_there_and_has_no_role(tmp_path: Path) -> None:
    path, name = tmp_path / "model.pt", "fused"
    torch.save(made(name).state_dict(), path)
    mapping = propose_mapping(path)
    with pytest.raises(CheckpointError, match=r'"gone\.#\.weight", which is to be left out, is not in the file'):
        load(path, mapping={**mapping, "left_out": ["gone.#.weight"]}, **answers(name))
    with pytest.raises(CheckpointError, match=r'"ln_f\.weight" has a role and is left out as well'):
        load(path, mapping={**mapping, "left_out": ["ln_f.weight"]}, **answers(name))


def propose_mapping_of(model: torch.nn.Module, folder: Path) -> dict[str, Any]:
    torch.save(model.state_dict(), folder / "plain.pt")
    return propose_mapping(folder / "plain.pt")


def test_the_sheet_of_a_file_that_nothing_is_understood_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    torch.save({f"x.{n}.{k}": torch.ones(8, 8) for n in range(2) for k in "abcd"} | {"e": torch.ones(30, 8)}, path)
    found = mapping_sheet(path)
    assert [(kind.pattern, kind.shape, kind.n) for kind in found.kinds] == [
        *((f"x.#.{k}", (8, 8), 2) for k in "abcd"),
        ("e", (30, 8), 1),
    ]
    assert found.width == 8
    assert not found.proposal.roles
    monkeypatch.setattr(proposal, "MOST_TENSORS", 200)
    torch.save({f"x.{n}": torch.ones(1) for n in range(201)}, path)
    with pytest.raises(CheckpointError, match="201 tensors; at most 200"):
        mapping_sheet(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("roles = 3", "no table of roles"),
        ("[roles]\n'embedding.weight' = 3", "must be the name of a tensor"),
        ("[roles]\n'embedding.weight' = { tensor = 'a', rows = [4, 2] }", "must be the name of a tensor"),
        ("[roles]\n'embedding.weight' = { tensor = 'a', run = 'x' }", "must be the name of a tensor"),
        ("[other]\nx = 1\n[roles]\n", '"other" is not known'),
        ("left_out = ['" + "x" * 400 + "']\n[roles]\n", "left_out must be"),
        ("[answers]\nn_heads = [1]\n[roles]\n", "answers must be"),
        ("[roles]\n" + "\n".join(f"'r{n}' = 'x'" for n in range(600)), "more than 512 entries"),
        ("a = " + "[" * 900, "not TOML"),
        ("[" + "a." * 500 + "a]", "lines of more than 1,000 characters"),
        ("#" * 70_000, "more than 65,536 bytes"),
        ("[roles", "not TOML"),
    ],
)
def test_a_hostile_file_is_bounded(text: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=re.escape(said)):
        role_mapping.from_toml(text, "x.toml")


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20), max_size=5),
    st.lists(st.text(min_size=1, max_size=9), max_size=3),
    st.dictionaries(
        st.from_regex("[a-z_]{1,9}", fullmatch=True),
        st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
        max_size=3,
    ),
)
def test_what_is_written_is_read_again(roles: dict[str, str], out: list[str], said: dict[str, Any]) -> None:
    def tame(text: str) -> str:
        return re.sub("[#*\ud800-\udfff]", "x", text)

    mapping = role_mapping.RoleMapping(
        {tame(role): role_mapping.Entry(tame(name), transpose=True, rows=(0, 3)) for role, name in roles.items()},
        tuple(map(tame, out)),
        {name: tame(value) if isinstance(value, str) else value for name, value in said.items()},
    )
    assert role_mapping.from_toml(mapping.to_toml(), "x.toml") == mapping
    assert role_mapping.read(mapping.plain()) == mapping


def test_the_command_writes_a_proposal_and_reads_it(tmp_path: Path) -> None:
    path, file = tmp_path / "model.pt", tmp_path / "mine.toml"
    torch.save(made("raw heads").state_dict(), path)
    written = CliRunner().invoke(cli.main, ["inspect", str(path), "--propose"])
    file.write_text(written.output)
    said = [f"{name}={value}" for name, value in answers("raw heads").items()]
    asked = [part for one in said for part in ("--assume", one)]
    shown = CliRunner().invoke(cli.main, ["inspect", str(path), "--mapping", str(file), *asked])
    assert shown.exit_code == 0, shown.output
    assert 'mapped by hand: "mine.toml" says the roles of 17 tensors' in shown.output

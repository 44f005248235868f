"""Every text type of `transformers`, recorded: the table in the documentation is what comes out, and none is wrong."""

import pytest

from tests.recorder.type_results import TABLE, result

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

ROWS = {
    row.split("|")[1].strip(): row for row in TABLE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")
}
del ROWS["type"]


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", ROWS)
def test_a_type_comes_out_as_the_table_says(name):
    found = result(name)
    assert not found.wrong, (found.met, found.seen)
    assert found.holds or found.said  # what does not hold is named
    assert ROWS[name] == found.row


def test_the_table_has_all_types():
    from tests.recorder.all_types import EXCEPTIONS, REFUSED, tables

    assert sorted(ROWS) == sorted(tables())
    assert {name.split(".")[0] for name in (*EXCEPTIONS, *REFUSED)} <= ROWS.keys()


def test_enough_types_open_and_hold():
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in ROWS.values()]
    opened = [row for row in cells if row[2]]
    held = [row for row in opened if row[3:6] == ["yes"] * 3]
    met = [row for row in opened if row[6]]
    agree = [row for row in met if len(set(row[6].split(", ")[1].split(" of "))) == 1]
    assert len(opened) >= 210
    assert len(held) >= 180
    assert not [row[0] for row in held if row in met and row not in agree]
    assert all(row[7] for row in cells if row not in held)
    said = " ".join(TABLE.read_text(encoding="utf-8").split())
    exact = sum(row[3] == "yes" for row in opened)
    assert f"Of {len(cells)} types {len(opened)} open, {exact} are exact, and {len(held)} exact, whole" in said
    assert f"Of the {len(met)} with a witness {len(agree)} agree" in said
    assert "not what the witness saw: 0." in said

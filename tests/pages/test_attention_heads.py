"""The heads on the attention page: what is sent, and what of it the link holds."""

import json

PAGE = "pages/explore/attention.py"


def heads(app) -> dict:
    """What the component on the page is told (without its numbers)."""
    (found,) = (
        part.proto for part in app.get("bidi_component") if part.proto.component_name.endswith("vizformer_attention")
    )
    return json.loads(found.mixed.json)


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def choose(app, **selection) -> None:
    data = heads(app)
    app.session_state["heads"] = {"selected": {**data["selected"], **selection, "version": data["version"], "seq": 1}}
    app.run()


def test_the_order_of_the_heads_is_part_of_the_link(open_app):
    app = open_app(PAGE, sort="entropy")
    assert not app.exception
    assert heads(app)["selected"]["order"] == "entropy"
    choose(app, order="first")
    assert link(app) == {"sort": "first"}
    choose(app, order="layer")
    assert link(app) == {}
    wrong = open_app(PAGE, sort="colour")
    assert any("sort = colour" in info.value or "order of the heads = colour" in info.value for info in wrong.info)

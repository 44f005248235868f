"""Addresses as the app has written them into readers' bookmarks: each still opens the view that it stands for.

The addresses are recorded and never follow a change of the code: what is renamed or moved inside must still read and
write them as they are.  (The words beside them tell by what one sees it; those may be reworded.)  Each opens in a
session of its own, as if it were pasted into another browser.
"""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests import tiny
from tests.checkpoints import folders as made
from tests.checkpoints.test_state_dict import nano_gpt, saved
from vizformer.checkpoints import save
from vizformer.checkpoints.files import hub as library
from vizformer.web.catalogue import hub, local_paths, server_folder, trainings
from vizformer.web.frame import sitemap
from vizformer.web.link.gone_parts import NEAREST
from vizformer.web.link.view import View, link_name
from vizformer.web.widgets import slides
from vizformer.web.words.terms import unmarked

pytestmark = pytest.mark.quick
STEP_BY_STEP = "→ Every number of head {} in layer {}, for query {}, step by step"

# Every page, as its place in the navigation writes it; the words are in its first line.
PAGES = {
    "/start": "A Transformer translating your sentence. Every picture is its real arithmetic: press anything.",
    "/map": "The map",
    "/tokens": "Tokens and embeddings",
    "/positions": "Positional encoding",
    "/qkv": "Query, key, value",
    "/heads": "Multi-head attention",
    "/masks": "Masks",
    "/block": "Add & norm, feed-forward",
    "/cross": "Cross-attention",
    "/decoding": "Decoding: generating text",
    "/training": "Training",
    "/costs": "Costs, variants, results",
    "/mixers": "After 2017",
    "/paper": "Worked examples",
    "/layer": "A layer by hand",
    "/compare": "Check your own",
    "/worksheet": "Worksheet",
    "/train": "Train",
    "/glossary": "Glossary",
    "/attention": "Attention",
    "/generation": "Generation",
    "/blanks": "Fill in the blank",
    "/elsewhere": "From other programs",
    "/lens": "Where does the answer come from?",
    "/what_if": "What if",
    "/side_by_side": "Side by side",
    "/report": "Model report",
    "/head_report": "What each head does",
}

# Every other part of every lesson, some of them in Chinese or for another model and text.
PARTS = {
    "/map?part=rnn&lang=zh_CN": ["节: rnn"],
    "/map?model=stories&text=a+cat+sat&part=gru": ["Part: gru", "Model: stories", "Tokens before the last: 3"],
    "/tokens?part=merges&lang=zh_CN": ["节: merges"],
    "/tokens?part=lookup": ["Part: lookup", "Token: 5"],
    "/tokens?model=stories&text=a+cat+sat&part=neighbours": ["Nearest to “cat”"],
    "/tokens?part=context": ["Part: context"],
    "/tokens?model=stories&text=a+cat+sat&part=norms": ["Part: norms", "Model: stories"],
    "/positions?part=clock&lang=zh_CN": ["节: clock", "第几对 i: 1"],
    "/positions?part=distance": ["Part: distance", "Position j: 7"],
    "/positions?model=stories&text=a+cat+sat&part=shuffle": ["Part: shuffle", "Sentence: a cat sat"],
    "/positions?part=options": ["Part: options", "Shift both by: 5"],
    "/positions?model=stories&text=a+cat+sat&part=longer": ["Part: longer", "Measured on: book"],
    "/qkv?part=arithmetic&lang=zh_CN": ["节: arithmetic"],
    "/qkv?part=three": ["Part: three"],
    "/qkv?model=stories&text=a+cat+sat&site=decoder&part=scale": ["Part: scale", "Model: stories"],
    "/heads?part=all&lang=zh_CN": ["节: all"],
    "/heads?part=reference": ["Part: reference", "Pronoun: ta_form"],
    "/heads?model=stories&text=a+cat+sat&part=groups": ["Part: groups", "Key/value heads: 4"],
    "/masks?part=paint&lang=zh_CN": ["节: paint"],
    "/masks?part=conventions": ["Part: conventions"],
    "/masks?model=stories&text=a+cat+sat&part=mistakes": ["Part: mistakes", "Sentence: a cat sat"],
    "/masks?part=leak": ["Part: leak", "Stack: decoder"],
    "/masks?part=leak&slide=words": ["slide 5 of 5"],
    "/block?part=norm": ["Part: norm"],
    "/block?part=residual": ["Part: residual"],
    "/block?part=order": ["Part: order"],
    "/block?part=ffn": ["Part: ffn"],
    "/block?part=count": ["Part: count"],
    "/cross?part=memory": ["Part: memory"],
    "/cross?part=alignment": ["Part: alignment"],
    "/cross?part=without": ["Part: without"],
    "/cross?part=bottleneck": ["Part: bottleneck"],
    "/decoding?part=free&dials=decoding.step%3A2": ["Part: free", "The wrong token: 2"],
    "/decoding?part=ways": ["Part: ways", "Beam width: 2"],
    "/decoding?part=bleu": ["Part: bleu", "Words in a run: 2"],
    "/decoding?part=cache": ["Part: cache", "New tokens, n: 64"],
    "/training?part=smoothing&dials=training.eps%3A0.2": [
        "Part: smoothing",
        "ε: share taken from the correct token: 0.2",
    ],
    "/training?part=rate": ["Part: rate", "Warm-up steps: 4000"],
    "/training?part=adam&dials=training.update%3A3": ["Part: adam", "Step: 3"],
    "/training?part=gradient": ["Part: gradient"],
    "/training?part=without": ["Part: without"],
    "/training?part=dropout": ["Part: dropout", "p: share that is dropped: 0"],
    "/training?part=sharing": ["Part: sharing"],
    "/training?part=classifier": ["Part: classifier"],
    "/costs?part=flash&dials=costs.tile%3A2": ["Part: flash", "Keys in a tile: 2"],
    "/costs?part=linear": ["Part: linear"],
    "/costs?part=sparse&dials=costs.reach%3A2": ["Part: sparse", "Window: keys on each side: 2"],
    "/costs?part=family&dials=costs.experts%3A16": ["Part: family", "Experts: 16"],
    "/costs?part=results&dials=costs.to%3Afr": ["Part: results", "Translation: fr"],
    "/mixers?part=comparison&dials=mixers.mixer%3Asink": ["Part: comparison"],
    "/mixers?part=sink&lang=zh_CN&dials=mixers.lower%3A8": ["节: sink"],
    "/mixers?part=latent&dials=mixers.width%3A3~mixers.heads%3A4": ["Part: latent"],
    "/mixers?part=delta&dials=mixers.angle%3A90~mixers.beta%3A0.5": ["Part: delta"],
    "/mixers?part=space&dials=mixers.step%3A0.5~mixers.skip%3A1.0": ["Part: space"],
}

# Every field of the view, and every kind of model.
PLACES = {
    "/attention?text=%E4%BD%A0%E5%A5%BD%E5%90%97%EF%BC%9F&lang=zh_CN": ["句子: 你好吗？", "How are you"],
    "/attention?model=stories&text=I+have+%3Cb%3Etwo%3C%2Fb%3E+dogs+%26+100%25+fun&site=decoder&picture=lines": [
        "Model: stories",
        "Sentence: I have <b>two</b> dogs & 100% fun",
        "vizformer_lines",
    ],
    "/attention?target=I+have+a+dog.&site=cross&layer=2&head=3&query=1&position=3": [
        "Target: I have a dog.",
        "Kind of attention: cross",
        "Most probable after position 3",
        STEP_BY_STEP.format(3, 2, 1),
    ],
    "/attention?site=decoder&picture=lines&layer=1&head=3": [STEP_BY_STEP.format(3, 1, 4), "vizformer_lines"],
    "/attention?sort=entropy&level=words": ["Whole words", "vizformer_attention"],
    "/attention?over=rollout&without=marks&layer=1": ["Rollout (Abnar & Zuidema 2020)", "The rest of each row"],
    "/attention?site=cross&picture=text&layer=1&head=2&over=mean": ["Mean over the heads", "vizformer_reading"],
    "/attention?model=cloze&text=She+opened+the+%5BMASK%5D.&position=2&lang=en": [
        "Sentence: She opened the [MASK].",
        "Most probable at position 2",
    ],
    "/attention?edits=encoder.0.self.q%400%2C1%2C0%3D2.5%3Bencoder.1.self%21unscaled%3Bdecoder.2.cross%21t%3D0.5": [
        "Set by hand: encoder.0.self.q[0, 1, 0] = 2.5, encoder.1.self: not divided by √d, decoder.2.cross: "
        "temperature 0.5",
    ],
    "/qkv?head=2&query=0&step=5": ["Part: arithmetic", "Step: 5", "Query: 0", "Head: 2"],
    "/qkv?site=cross&layer=1&head=2&part=lookup": ["Part: lookup", "Layer: 1", "Head: 2", "Kind of attention: cross"],
    "/qkv?edits=encoder.0.self.v%400%2C1%2C3%3D-1e-05&part=arithmetic": ["Set by hand: encoder.0.self.v[0, 1, 3]"],
    "/layer?site=decoder&step=3&material=toy&toy=target%400%2C0%2C1%3D3%3Bdecoder.0.self%21unscaled": [
        "Step: 3",
        "Divide by √d_head: False",
        "Set by hand: target[0, 0, 1] = 3, decoder.0.self: not divided by √d",
    ],
    "/layer?material=toy&toy=x%401%2C0%2C2%3D-0.25": ["Set by hand: x[1, 0, 2] = -0.25"],
    "/layer?model=stories&text=a+cat+sat&site=decoder&layer=1&step=7": ["Layer: 1", "7 · Add the mask"],
    "/generation?model=stories&text=The+cat&sampling=n5&new=2": ["New tokens, at most: 5", "Up to token 2:"],
    "/generation?model=stories&text=The+cat&site=decoder&layer=1&head=2"
    "&sampling=sampling%2Cn6%2Ct1.25%2Ck7%2Cp0.5%2Cm0.01%2Cr1.2%2Cs7&new=3": [
        "How the next token is chosen: sampling",
        "New tokens, at most: 6",
        "Temperature: 1.25",
        "top-k: 7",
        "top-p: 0.5",
        "min-p: 0.01",
        "Repetition penalty: 1.2",
        "Seed: 7",
        "Up to token 3:",
    ],
    "/generation?model=stories&text=The+cat&sampling=n8&branch=1%3A17%2C3%3A254": ['"branch": "1:17,3:254"'],
    "/generation?sampling=beam%2Cn8%2Cw2%2Ca0.9": ["Width: texts side by side: 2", "Length penalty α: 0.9"],
    "/blanks?model=cloze&text=She+opened+the+door+and+went+in.&hidden=4": ["The hidden word was “door”"],
    "/blanks?model=cloze&text=She+opened+the+door+and+went+in.&hidden=2%2C4": [
        "The hidden word was “door”",
        "she opened the room and went in.",
    ],
    "/train?beside=train-0123456789-2": ["Task: repeat"],
    "/attention?text=a+cat+sat&model=stories&site=decoder&picture=lines&lines=0,2@0.2": ["Sentence: a cat sat"],
    "/attention?text=a+cat+sat&model=stories&site=decoder&numbers=scores&query=2&key=1": ["Sentence: a cat sat"],
    "/cross?part=without&memory=%E6%88%91%E6%9C%89%E4%B8%80%E6%9D%A1%E7%8B%97%E3%80%82": ["Part: without"],
    "/masks?part=kinds&batch=a+dog": ["Part: kinds"],
    "/tokens?part=context&second=a+dog&third=the+dog": ["Part: context"],
    "/train?run=train-0123456789-3": ["This training is no longer on the server."],
    "/attention?model=train-0123456789&text=The": ["Model: train-0123456789", STEP_BY_STEP.format(0, 0, 0)],
    "/side_by_side?model=models%2Fsmall-llama&text=The+cats+sat&site=decoder&second=The+cats+sat"
    "&other=models%2Fsmall-llama%3Bdtype%3Dbfloat16": ["Second model: models/small-llama;dtype=bfloat16", "bits apart"],
    "/report?model=models%2Fnano.pt%3Bn_heads%3D4%3Bactivation%3Dgelu": [
        "How many attention heads has a layer?: 4",
        "Tensors used: 29 / 29",
    ],
    "/report?model=models%2Fsmall-llama%3Bdtype%3Dbfloat16&text=The+cats+sat": [
        "Model: models/small-llama;dtype=bfloat16",
        "Computes in: bfloat16",
    ],
    "/qkv?model=models%2Fnano.pt%3Bn_heads%3D4%3Bactivation%3Dgelu%3Bdtype%3Dfloat16&text=3+14+0+3&site=decoder"
    "&part=arithmetic": ["Model: models/nano.pt;n_heads=4;activation=gelu;dtype=float16", "Query: 3"],
    "/attention?model=models%2Fsmall-llama&text=The+cats+sat&site=decoder&layer=1": [STEP_BY_STEP.format(0, 1, 7)],
    "/heads?model=hub%2Fsomebody%2Ftiny-gpt2&text=The+cats+sat&site=decoder": ["The vectors of token 5, “t”"],
    "/attention?model=hub%2Fsomebody%2Ftiny-gpt2%40main&text=The+cats+sat&site=decoder&head=1": [
        "Model: hub/somebody/tiny-gpt2@main",
        STEP_BY_STEP.format(1, 0, 5),
    ],
    "/report?model=hub%2Fsomebody%2Felse": ["somebody/else has not been fetched to this server yet."],
    # Choices that were taken out: the usual one is shown in their place.
    "/attention?site=decoder&picture=lines&over=mean": ["are shown as a map", "vizformer_attention"],
    "/what_if?dials=whatif.instead%3Aresample~whatif.draws%3A4~whatif.key%3A1": ["One part at a time: if two heads"],
    "/lens?dials=lens.method%3Agradient": ["Which input tokens it depends on"],
    "/layer?model=path%2F0123456789ab&text=The+cats+sat&site=decoder": ["Model: path/0123456789ab", "0 · The"],
    "/report?model=upload%2F4f0c6ad2e9b10d37": ["An upload lives only in the session that made it"],
}

# The settings of every lesson.
SETTINGS = {
    "/map?part=rnn&dials=map.k%3A5~map.r%3A4~map.kind%3Arestricted": [
        "Kernel width k: 5",
        "Window r: 4",
        "Layer: restricted",
    ],
    "/map?part=gru&dials=map.back%3A2~map.scale%3Alinear": ["Tokens before the last: 2", "Scale: linear"],
    "/tokens?part=merges&dials=tokens.merge%3Apaper~tokens.step%3A2": ["What to watch: paper", "Merges done: 2"],
    "/tokens?part=neighbours&dials=tokens.at%3A2~tokens.centred%3A1": [
        "Nearest to “有”",
        "Subtract the mean of all rows first: True",
    ],
    "/tokens?part=norms&dials=tokens.scale%3A0": ["The text with the factor switched"],
    "/positions?part=function&dials=positions.query%3A2~positions.key%3A1": [
        "Query token, at position m: 2",
        "Key token, at position n: 1",
    ],
    "/positions?dials=positions.d%3A64~positions.pos%3A5~positions.dim%3A7~positions.cosines%3A1"
    "~positions.pairs%3A0%2C9~positions.span%3A64": [
        "Width of the encoding, d_model: 64",
        "Position pos: 5",
        "Dimension: 7",
        "The cosines too: True",
        "Pairs of dimensions: [0, 9]",
        "Positions shown: 64",
    ],
    "/positions?part=clock&dials=positions.d%3A16~positions.pos%3A4~positions.k%3A6~positions.pair%3A2": [
        "Width of the encoding, d_model: 16",
        "Position pos: 4",
        "Steps on, k: 6",
        "Pair i: 2",
    ],
    "/positions?part=distance&dials=positions.i%3A2~positions.j%3A5": ["Position i: 2", "Position j: 5"],
    "/positions?part=shuffle&dials=positions.scheme%3Aalibi~positions.mask%3Acausal~positions.order%3Arandom"
    "~positions.seed%3A4": [
        "Positions: alibi",
        "Each token sees: causal",
        "Shuffle my tokens: random",
        "Draw number: 4",
    ],
    "/positions?part=options&dials=positions.head%3A2~positions.query%3A2~positions.key%3A1"
    "~positions.rope_pair%3A2~positions.shift%3A7": [
        "Head: 2",
        "Query i: 2",
        "Key j: 1",
        "Pair m: 2",
        "Shift both by: 7",
    ],
    "/positions?part=options&dials=positions.way%3Aalibi": ["Positions: alibi"],
    "/positions?part=longer&dials=positions.past%3A1~positions.text%3Achinese": [
        "Show what happens past the trained length: True",
        "Measured on: chinese",
    ],
    "/qkv?dials=qkv.sweet%3A1.5~qkv.cold%3A-1~qkv.t%3A2": ["sweet: 1.5", "cold: -1.0", "Temperature T: 2.0"],
    "/qkv?part=scale&dials=qkv.t%3A2~qkv.d%3A16": ["Temperature T: 2.0", "d, the width of q and k: 16"],
    "/qkv?part=three&dials=qkv.matrices%3Ashared": ["Compare with: shared"],
    "/heads?part=groups&dials=heads.kv%3A2~heads.length%3A2048": ["Key/value heads: 2", "Tokens: 2048"],
    "/masks?dials=masks.kind%3Awindow~masks.reach%3A2~masks.causal%3A1": [
        "Mask: window",
        "Window: keys on each side: 2",
        "And causal: True",
    ],
    "/masks?dials=masks.kind%3Abigbird~masks.global%3A2~masks.random%3A0~masks.seed%3A3": [
        "Mask: bigbird",
        "Global tokens: 2",
        "Random keys: 0",
        "Seed: 3",
    ],
    "/masks?dials=masks.kind%3Aprefix~masks.prefix%3A4": ["Mask: prefix", "Prefix length: 4"],
    "/masks?dials=masks.kind%3Apadding~masks.sentence%3Atyped": ["Mask: padding", "Show: typed"],
    "/masks?part=paint&dials=masks.cells_a%3Aaqab~masks.on%3Aencoder": [
        "Attention: encoder",
        '"flips": [[3, 1], [4, 2]]',
    ],
    "/masks?part=mistakes&dials=masks.mistake%3Azero": ["Mistake: zero"],
    "/worksheet?dials=worksheet.seed%3A7~worksheet.key%3A1": ["Version: 7", "Show the answers: True"],
    "/worksheet?dials=worksheet.lessons%3A3": [
        "has its wave gone through one full turn"
    ],  # Positional encoding, then the third lesson
}

# From when "/" was the page Attention: whatever says something that the start page does not show.
OF_THE_OLD_DOOR = {
    "/?head=3&layer=1": "/attention?head=3&layer=1",
    "/?text=%E4%BD%A0%E5%A5%BD%E5%90%97%EF%BC%9F&site=cross&query=1&lang=zh_CN": "/attention?text=%E4%BD%A0%E5%A5%BD"
    "%E5%90%97%EF%BC%9F&site=cross&query=1&lang=zh_CN",
    "/?model=stories&text=a+cat+sat&site=decoder&picture=lines": "/attention?model=stories&text=a+cat+sat&site=decoder"
    "&picture=lines",
    "/?edits=encoder.0.self%21unscaled&position=2": "/attention?edits=encoder.0.self%21unscaled&position=2",
    "/?step=5&part=arithmetic": "/attention?step=5&part=arithmetic",  # carried along from another page
    "/": "/?model=zh-en",  # an empty link means the model of the reader's language
    "/?model=stories&text=a+cat+sat&lang=zh_CN": "/?model=stories&text=a+cat+sat&lang=zh_CN",
    "/?target=I+have+a+dog.": "/?target=I+have+a+dog.",
}

# Parts that there are no more.
GONE = (
    "/heads?part=cost&dials=heads.h%3A8~heads.n%3A2048",
    "/tokens?part=vectors&dials=tokens.sum%3A1",
    "/tokens?part=signals&dials=tokens.patch%3A8~tokens.chosen%3A3",
    "/block?part=dropout",
    "/block?part=width",
    "/map?part=cost",
    "/heads?part=cost",
    "/block?part=neurons",
    "/block?part=build",
    "/decoding?part=steps",
    "/decoding?part=drafts&dials=decoding.drafts%3A2",
    "/training?part=batches&lang=zh_CN",
    "/training?part=average&dials=training.run%3A1",
    "/costs?part=complexity&dials=costs.k%3A4",
    "/costs?part=calculator&dials=costs.model%3Agpt3-175b",
    "/costs?part=measured",
)
LINKS: dict[str, list[str]] = {**{address: [title] for address, title in PAGES.items()}, **PARTS, **PLACES, **SETTINGS}
REFUSED = "/report?model=upload%2F4f0c6ad2e9b10d37"  # the one that belongs to a session which is over


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory):
    """What the links name: a server's folder of models, a hub's model, a trained one."""
    root = tmp_path_factory.mktemp("kept")
    (root / "models").mkdir()
    made.llama(root / "models" / "small-llama")
    saved(nano_gpt(), root / "models" / "nano.pt")
    made.gpt2(root / "tiny-gpt2")
    save(tiny.checkpoint("encoder-decoder"), root / "trainings" / "train-0123456789")
    (root / "trainings" / "train-0123456789" / "plan.json").write_text('{"task": "copy"}')
    return root


@pytest.fixture(autouse=True)
def server(kept, monkeypatch):
    """The server that wrote the links, as it finds them again."""
    gpt2 = kept / "tiny-gpt2"
    here = {"Host": "127.0.0.1:8501", "Origin": "http://127.0.0.1:8501"}
    monkeypatch.setenv(server_folder.VARIABLE, str(kept / "models"))
    monkeypatch.setattr(hub, "_DESK", hub._Desk())
    monkeypatch.setattr(library, "cached", {f"somebody/tiny-gpt2{at}": gpt2 for at in ("", "@main")}.get)
    monkeypatch.setattr(trainings, "root", lambda: kept / "trainings")
    monkeypatch.setenv(local_paths.SWITCH, "on")
    monkeypatch.setattr(local_paths, "_visitor", lambda: (None, here))
    monkeypatch.setattr(local_paths, "_KNOWN", {"0123456789ab": gpt2})


def fields(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query, strict_parsing=True) if "?" in address else [])


def said_by(app: AppTest) -> dict[str, str]:
    """What the address says after the run."""
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def screen(app: AppTest) -> str:
    """What is shown: texts, widgets as "label: value", titles of charts, and what is sent to components."""
    shown: list[str] = []
    for element in app.main:
        if element.type == "html":
            shown.append(element.proto.body)
        elif element.type == "bidi_component":
            sent = json.loads(element.proto.mixed.json or "null")
            shown.append(f"{element.proto.component_name} {json.dumps(sent, ensure_ascii=False)}")
        elif element.type == "plotly_chart":
            shown.append(str(json.loads(element.proto.spec)["layout"].get("title", {}).get("text")))
        elif hasattr(element, "label"):
            shown.append(f"{element.label}: {getattr(element, 'value', None)}")
            if element.type == "selectbox" and element.index is not None:
                shown.append(element.options[element.index])  # as it reads in the box
        elif hasattr(element, "value"):
            shown.append(str(element.value))
    return unmarked("\n".join(shown))


@pytest.mark.sample(4)
@pytest.mark.parametrize("address", LINKS)
def test_a_link_of_before_shows_what_it_showed(open_app, address):
    path = urlsplit(address).path
    entry = sitemap.PAGES[path.removeprefix("/")]
    app = open_app(entry.file, **fields(address))
    chinese = "lang=zh" in address
    assert not app.exception
    assert bool(app.error) == (address == REFUSED), [error.value for error in app.error]
    assert chinese or app.title[0].value == PAGES[path]
    for notice in (*app.info, *app.caption):  # of a value that could not be used, or an edit that does not fit
        assert "left out" not in notice.value.replace("Keys left out", "")
        assert "忽略" not in notice.value
        assert " instead." not in notice.value
        assert "改为显示" not in notice.value
    shown = screen(app)
    for words in LINKS[address]:
        assert words in shown, words
    back = said_by(app)
    if not fields(
        address
    ):  # since then a link that says nothing means the model of the reader's language, or of the page
        assert back.pop("model") == ("cloze" if address == "/blanks" else "zh-en")
    assert back == fields(address)


@pytest.mark.parametrize("address", GONE)
def test_a_link_to_a_part_that_is_gone_says_so_and_leads_to_the_nearest(open_app, address):
    lesson, given = urlsplit(address).path.removeprefix("/"), fields(address)
    app = open_app(sitemap.PAGES[lesson].file, **given)
    assert not app.exception
    assert said_by(app)["part"] == NEAREST[f"{lesson}/{given['part']}"]
    if "lang" not in given:
        assert any("no longer has" in notice.value for notice in app.info)


@pytest.mark.parametrize("address", OF_THE_OLD_DOOR)
def test_a_link_to_the_old_door_shows_what_it_showed(open_app, address):
    app = open_app(**fields(address))
    shown = OF_THE_OLD_DOOR[address]
    old = shown.startswith("/attention")
    assert not app.exception
    assert not app.error
    assert app.title[0].value.startswith(("Attention", "注意力") if old else ("A Transformer", "一个正在"))
    assert ("vizformer_whole_model_picture" in screen(app)) == (not old)
    assert said_by(app) == fields(shown)


@pytest.mark.parametrize(
    "address",
    [
        "/mixers?part=memory",
        "/mixers?part=limits&dials=mixers.task%3Acopy~mixers.length%3A16",
        "/mixers?part=experts&dials=mixers.k%3A1~mixers.turn%3A45~mixers.divided%3A0",
    ],
)
def test_a_link_to_a_part_that_went_says_so_in_its_lesson(open_app, address):
    app = open_app("pages/learn/mixers.py", **fields(address))
    assert not app.exception
    assert app.title[0].value == "After 2017"
    assert any(f"This page has no part “{fields(address)['part']}”" in notice.value for notice in app.info)


def test_a_link_to_a_mixer_that_went_shows_the_comparison(open_app):
    app = open_app("pages/learn/mixers.py", part="comparison", dials="mixers.mixer:convolution")
    assert not app.exception
    assert "Mixer: delta" in screen(app)


def test_a_link_to_the_bundled_model_that_went_says_so(open_app):
    app = open_app("pages/explore/attention.py", model="hybrid")
    assert not app.exception
    assert any("This page has no model “hybrid”" in notice.value for notice in app.info)


def test_a_wrong_value_in_a_link_to_the_old_door_is_told_there(open_app):
    app = open_app(head="banana", text="hello")
    assert app.title[0].value == "Attention"
    assert any("“head” to “banana”" in notice.value for notice in app.info)


def test_the_start_page_is_reached_again_with_a_view_of_attention(open_app):
    app = open_app("pages/explore/attention.py", head=3, layer=1, text="hello")
    app.query_params.clear()  # as the navigation does
    app.switch_page("pages/learn/start.py").run()
    assert app.title[0].value.startswith("A Transformer translating")
    assert said_by(app) == {"text": "hello"}  # a reload shows this page again
    app.query_params.clear()
    app.switch_page("pages/explore/attention.py").run()
    assert said_by(app) == {"text": "hello", "head": "3", "layer": "1"}


def test_the_links_name_every_page_every_part_and_every_field():
    later = {*sitemap.DOORS, sitemap.OPEN, sitemap.PATH}
    pages = {url for url, entry in sitemap.PAGES.items() if entry not in later}
    assert {address.lstrip("/") for address in PAGES} == pages
    for entry in sitemap.COURSE:
        named = {fields(address).get("part") for address in LINKS if urlsplit(address).path == f"/{entry.url}"}
        _first, *others = slides.lesson_prose(entry.url, "en")
        assert set(others) <= named, entry.url
        assert {key for key in NEAREST if key.startswith(f"{entry.url}/")} == {
            f"{entry.url}/{fields(address)['part']}" for address in GONE if urlsplit(address).path == f"/{entry.url}"
        }
    assert {name for address in LINKS for name in fields(address)} == set(
        map(link_name, View.__dataclass_fields__.values())
    )

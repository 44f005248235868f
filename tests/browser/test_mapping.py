"""Tensors of a hand-written model are mapped to their roles in a browser, where names do not say them."""

import re

import pytest
import torch
from playwright.sync_api import expect

from tests import handmade_models, tiny

WORDS = {
    "en-US": (
        "Open another model",
        "Upload and open",
        "Open with this mapping",
        "mapped by hand: the roles of 17 tensors",
    ),
    "zh-CN": ("打开其他模型", "上传并打开", "按这些对应关系打开", "手工指定：打开模型时给出了 17 个张量的作用"),
}
CHOSEN = {
    "final_norm-weight": "ln_f.weight",
    "self_attention-qkv-weight": "blocks.#.attn.aa.weight",
    "self_attention-W_O-weight": "blocks.#.attn.proj.weight",
    "self_norm-weight": "blocks.#.norm1.weight",
    "feedforward_norm-weight": "blocks.#.norm2.weight",
    "feedforward-W_in-weight": "blocks.#.mlp.fc1.weight",
    "feedforward-W_out-weight": "blocks.#.mlp.fc2.weight",
}


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize("locale", WORDS)
def test_roles_are_chosen_in_boxes_and_the_link_carries_them(open_tab, tmp_path, locale):
    other, upload, send, mapped = WORDS[locale]
    weights = tiny.randomise(handmade_models.MODELS["fused"].make()).state_dict()
    torch.save({name.replace("attn.qkv", "attn.aa"): tensor for name, tensor in weights.items()}, tmp_path / "odd.pt")
    tab = open_tab(f"/report?lang={locale.replace('-', '_')}")
    page = tab.page
    page.get_by_text(other).click()
    tab.choose(tmp_path / "odd.pt")
    tab.settled()
    page.get_by_role("button", name=upload).click()
    expect(page.get_by_role("button", name=send)).to_be_visible()
    tab.settled()
    for role, tensor in CHOSEN.items():
        box = page.locator(f"[class*='-{role}']").get_by_role("combobox")
        box.click()
        box.fill(tensor)
        page.get_by_role("option", name=tensor).click()
        expect(box).to_have_value(re.compile(rf"^{re.escape(tensor)} "))
    with tab.runs():
        page.get_by_role("button", name=send).click()
    tab.settled()
    assert "mapping" in tab.address
    expect(page.get_by_text(mapped)).to_be_visible()  # and only what no tensor tells is still asked

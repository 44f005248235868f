"""The four ways that are measured compute what they say, and the process that measures them ends as told."""

import json
import os
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from vizformer.analysis.costs.attention_speed import (
    COMPARISONS,
    LAYER_WAYS,
    LONGEST_BACKWARD,
    REACH,
    RESULTS,
    SETTINGS,
    WAYS,
    WIDTH,
    attend,
    due,
    layer_call,
    main,
    measure,
    median_seconds,
    peak_bytes,
    read,
)
from vizformer.jobs.worker import STOP, WATCHED
from vizformer.model.sparse_masks import window_mask

N = 4 * REACH


@pytest.fixture(scope="module")
def qkv() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = torch.randn(3, N, WIDTH, generator=torch.Generator().manual_seed(1))
    return q, k, v


@pytest.mark.sweep
def test_full_and_fused_are_the_same(qkv: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    torch.testing.assert_close(attend("full", *qkv), attend("fused", *qkv), atol=1e-5, rtol=1e-5)


def test_the_blocks_of_the_window_are_attention_with_its_mask(
    qkv: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    q, k, v = (x[None, None] for x in qkv)
    for n, reach in ((N, REACH), (N, 2 * REACH), (REACH, REACH)):
        cut = [x[:, :, :n] for x in (q, k, v)]
        own = F.scaled_dot_product_attention(*cut, attn_mask=window_mask(n, reach).bias)[0, 0]
        torch.testing.assert_close(attend("windowed", *(x[0, 0] for x in cut), reach), own, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="do not fit blocks"):
        attend("windowed", *(x[: REACH + 1] for x in qkv))


def test_linear_is_linear_attention(qkv: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    q, k, v = qkv
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).T
    own = weights / weights.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(attend("linear", q, k, v), own, atol=1e-4, rtol=1e-4)


@pytest.mark.sweep
def test_the_most_bytes_that_are_held_are_counted() -> None:
    assert peak_bytes(lambda: torch.empty(1000)) == pytest.approx(4000, abs=64)

    def one_after_the_other() -> torch.Tensor:
        a = torch.empty(100_000)
        del a
        return torch.empty(50_000)

    assert peak_bytes(one_after_the_other) == pytest.approx(400_000, abs=64)


def test_full_attention_holds_the_map_and_the_others_do_not() -> None:
    found = {(one.way, one.n): one for one in measure((N, 2 * N))}
    assert [way for way, n in found if n == N] == list(WAYS)
    assert all(one.seconds > 0 for one in found.values())
    assert found["full", 2 * N].nbytes >= 2 * 4 * (2 * N) ** 2
    assert found["full", 2 * N].nbytes > 3 * found["full", N].nbytes
    for way in ("windowed", "linear"):
        assert found[way, 2 * N].nbytes < 2.2 * found[way, N].nbytes  # type: ignore[index]
    assert found["fused", 2 * N].nbytes < found["full", 2 * N].nbytes / 2


def test_the_median_leaves_the_first_call_out() -> None:
    calls: list[int] = []
    median_seconds(lambda: calls.append(1), repeats=3)
    assert len(calls) == 4


def test_layers_read_every_token_and_take_the_gradients_of_all_weights() -> None:
    x = torch.randn(6, 8)
    for way in ("attention", "gru"):
        out = layer_call(way, x)()
        assert isinstance(out, torch.Tensor)
        assert out.shape == (1, 6, 8)
        assert not out.requires_grad  # what reads alone keeps nothing for a gradient
        gradients = layer_call(f"{way}_backward", x)()  # type: ignore[arg-type]
        assert sum(one.numel() for one in gradients) in (4 * 8 * 9, 6 * 8 * 9)  # type: ignore[attr-defined]


def test_gradients_are_measured_on_short_texts_alone() -> None:
    found = due("layers", (LONGEST_BACKWARD, 2 * LONGEST_BACKWARD))
    assert [way for way, n in found if n == LONGEST_BACKWARD] == list(LAYER_WAYS)
    assert [way for way, n in found if n > LONGEST_BACKWARD] == ["attention", "gru"]
    measured = list(measure((4, 8), kind="layers"))
    assert [(one.way, one.n) for one in measured] == due("layers", (4, 8))
    assert all(one.seconds > 0 for one in measured)
    assert COMPARISONS["layers"].seconds <= 5


def settings(folder: Path, lengths: list[int], seconds: float) -> None:
    (folder / SETTINGS).write_text(json.dumps({"kind": "heads", "lengths": lengths, "seconds": seconds}))
    (folder / WATCHED).touch()


def test_the_process_writes_line_by_line_and_says_how_it_ended(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        for name, seconds, stopped, count, ending in (
            ("done", 60.0, False, 4, "done"),
            ("time", -1.0, False, 0, "time"),
            ("stopped", 60.0, True, 0, "stopped"),
        ):
            folder = tmp_path / name
            folder.mkdir()
            settings(folder, [REACH], seconds)
            if stopped:
                (folder / STOP).touch()
            main(folder, os.getppid())
            found, said = read(folder)
            assert (len(found), said) == (count, ending)
    finally:
        torch.set_num_threads(threads)


def test_half_a_line_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path) == ([], "")
    (tmp_path / RESULTS).write_text('{"way": "full", "n": 64, "seconds": 0.5, "nbytes": 7}\n{"way": "fus')
    found, ending = read(tmp_path)
    assert [one.nbytes for one in found] == [7]
    assert not ending

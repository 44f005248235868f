"""What is computed is kept for all within a budget of bytes, and computed once for all who ask at the same time."""

import gc
import threading
import weakref

import numpy as np
import pytest
import streamlit as st
import torch

from tests.refs import ref, subject
from vizformer.checkpoints.tensors.memory import DoesNotFitError
from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.web.catalogue import bounded_cache, model_cache, sources, subject_cache, subject_functions
from vizformer.web.catalogue.bounded_cache import Cache, cached, count_bytes

MB = 2**20


@pytest.fixture
def small():
    return Cache(lambda: 10 * MB)


def test_what_was_asked_for_last_stays_within_the_budget(small):
    made = []

    @cached(cache=small)
    def zeros(number):
        made.append(number)
        return np.zeros(3 * MB, np.uint8)

    for number in (0, 1, 2, 0, 3):
        zeros(number)
    assert small.bytes <= 10 * MB
    assert len(small) == 3
    assert made == [0, 1, 2, 3]
    zeros(0)  # it was asked for after 1 and 2
    zeros(2)
    assert made == [0, 1, 2, 3]
    zeros(1)
    assert made == [0, 1, 2, 3, 1]


@pytest.mark.slow
@pytest.mark.sweep
def test_a_thousand_texts_of_any_length_do_not_grow_it_past_the_budget(small):
    @cached(cache=small)
    def doubled(text):
        return text * 2

    for number in range(1000):
        doubled(f"{number} " + "x" * 20_000)
    assert 9 * MB < small.bytes <= 10 * MB
    for number in range(100_000):
        doubled(f"{number}")  # keys and entries count too
    assert small.bytes <= 10 * MB
    assert len(small) < 25_000


def test_what_is_larger_than_the_budget_is_there_for_whoever_asked_and_goes_next(small):
    @cached(cache=small)
    def large(number):
        return np.zeros(20 * MB, np.uint8)

    assert large(0) is large(0)
    second = large(1)
    assert len(small) == 1
    assert large(1) is second


def test_values_above_the_budget_can_be_spared_for_who_needs_both_in_turn():
    """Two models that are compared: else each would be read anew whenever the other one was looked at."""
    made, spared = [], {0, 1}

    @cached(cache=Cache(lambda: 10 * MB, spares=lambda key: key[1] in spared))
    def large(number):
        made.append(number)
        return np.zeros(20 * MB, np.uint8)

    for number in (0, 1, 0, 1, 2, 0, 1):
        large(number)
    assert made == [0, 1, 2]
    spared.clear()
    large(3)
    assert [large.holds(number) for number in range(4)] == [False, False, False, True]


def test_a_number_of_values_can_be_the_bound():
    few = Cache(most=2)

    @cached(cache=few)
    def name(number):
        return str(number)

    for number in range(5):
        name(number)
    assert len(few) == 2


def test_the_bytes_are_given_back(small):
    @cached(cache=small)
    def zeros(number):
        return np.zeros(MB, np.uint8)

    for number in range(5):
        zeros(number)
    assert small.bytes > 5 * MB
    zeros.clear()
    assert (small.bytes, len(small)) == (0, 0)


def test_the_same_call_has_one_key_however_it_is_written(small):
    made = []

    @cached(cache=small)
    def add(left, right=2):
        made.append(left + right)
        return made[-1]

    assert [add(1), add(1, 2), add(1, right=2), add(right=2, left=1)] == [3] * 4
    assert made == [3]


def test_who_asks_while_it_is_computed_waits_for_it(small):
    started, go, made, found = threading.Event(), threading.Event(), [], []

    @cached(cache=small)
    def slow(text):
        made.append(text)
        started.set()
        assert go.wait(30)
        return [text]

    readers = [threading.Thread(target=lambda: found.append(slow("one text"))) for _ in range(20)]
    readers[0].start()
    assert started.wait(30)
    for reader in readers[1:]:
        reader.start()
    go.set()
    for reader in readers:
        reader.join(30)
    assert made == ["one text"]
    assert len(found) == 20
    assert all(one is found[0] for one in found)


def test_when_the_first_fails_the_next_one_tries(small):
    started, go, tried, found = threading.Event(), threading.Event(), [], []

    @cached(cache=small)
    def at_second_try():
        tried.append(threading.current_thread().name)
        started.set()
        assert go.wait(30)
        if len(tried) == 1:
            raise KeyboardInterrupt  # as Streamlit ends a run: no error of ours
        return "found"

    def first():
        with pytest.raises(KeyboardInterrupt):
            at_second_try()

    one, other = threading.Thread(target=first), threading.Thread(target=lambda: found.append(at_second_try()))
    one.start()
    assert started.wait(30)
    other.start()
    go.set()
    one.join(30)
    other.join(30)
    assert found == ["found"]
    assert len(tried) == 2


def test_a_function_that_needs_its_own_result_says_so_and_does_not_wait_for_ever(small):
    @cached(cache=small)
    def round_and_round():
        return round_and_round()

    with pytest.raises(RuntimeError, match="while it is computed"):
        round_and_round()


def test_refusals_are_kept_where_they_are_settled(small):
    tried = []

    @cached(cache=small, refusals=lambda name: name.endswith("@1"))
    def opened(name):
        tried.append(name)
        raise CheckpointError(N_("{name} is damaged.", name=name))

    for name in ("model@1", "model"):
        for _ in range(3):
            with pytest.raises(CheckpointError, match=f"{name} is damaged") as refused:
                opened(name)
            assert refused.value.message.values == {"name": name}
    assert tried == ["model@1", "model", "model", "model"]


def test_a_refusal_that_passes_is_not_kept(small):
    tried = []

    @cached(cache=small, refusals=lambda: True)
    def opened():
        tried.append(1)
        raise DoesNotFitError(N_("No memory."), ("bfloat16",))

    for _ in range(2):
        with pytest.raises(DoesNotFitError) as refused:
            opened()
        assert refused.value.fitting == ("bfloat16",)
    assert len(tried) == 2


def test_what_one_session_may_not_see_is_not_refused_to_the_others():
    with pytest.raises(CheckpointError) as refused:
        sources.folder(ref("upload/0123456789abcdef"))
    assert refused.value.passing


def test_a_kept_refusal_keeps_nothing_of_the_run_in_which_it_was_raised(small):
    class Page:
        pass

    @cached(cache=small, refusals=lambda: True)
    def opened():
        raise CheckpointError("damaged")

    def run():
        page = Page()
        with pytest.raises(CheckpointError):
            opened()
        return weakref.ref(page)

    gone = [run(), run()]
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_streamlits_clear_cache_reaches_nothing_that_is_shared():
    before = subject_functions.toy_tensors("encoder")
    st.cache_data.clear()
    st.cache_resource.clear()
    assert subject_functions.toy_tensors("encoder") is before


def test_the_budget_is_a_setting(monkeypatch):
    assert bounded_cache.limit() == bounded_cache.USUAL
    monkeypatch.setenv(bounded_cache.VARIABLE, "1000000")
    assert bounded_cache.limit() == 1_000_000
    for nonsense in ("", "-1", "1e9", "٣", "9" * 5000):
        monkeypatch.setenv(bounded_cache.VARIABLE, nonsense)
        assert bounded_cache.limit() == bounded_cache.USUAL


# --- what an object takes ---------------------------------------------------------------------------------------------


def test_a_trace_counts_with_its_tensors():
    trace = subject("zh-en", "我有一只猫。" * 20, "a cat").trace
    assert trace.nbytes < count_bytes(trace) < 1.2 * trace.nbytes + 200_000


def test_steps_count_with_their_arrays():
    steps = subject_cache.steps(subject("zh-en", "我有一只猫。", "a cat"), "encoder.0.self", 0, 1)
    arrays = {id(operand.value): operand.value.nbytes for step in steps for operand in step.operands}
    assert count_bytes(steps) > sum(arrays.values()) * 0.5
    assert count_bytes(steps) < 50 * MB


def test_a_view_counts_with_all_of_what_it_looks_at_and_what_is_shared_counts_once():
    table = np.zeros((1000, 1000))
    assert count_bytes(table[:1]) >= table.nbytes
    assert count_bytes([table, table, table[0], {"again": table}]) < table.nbytes + 5000
    tensor = torch.zeros(1000, 1000)
    assert count_bytes(tensor[:1]) >= 4_000_000
    assert count_bytes([tensor, tensor.T, tensor[0]]) < 4_000_000 + 5000
    assert count_bytes(tensor.numpy()) >= 4_000_000


def test_figures_count_with_their_data_and_not_with_the_rules_of_plotly():
    from vizformer import figures

    empty = figures.attention_heatmap(np.eye(2, dtype=np.float32), ["a", "b"], ["a", "b"])
    tokens = [f"token {number}" for number in range(500)]
    figure = figures.attention_heatmap(np.eye(500, dtype=np.float32), tokens, tokens)
    assert count_bytes(empty) < 200_000
    assert 250_000 < count_bytes(figure) < 10 * MB


def test_reports_count():
    assert 1000 < count_bytes(model_cache.report(ref("zh-en"))) < 5 * MB


def test_what_points_to_itself_has_an_end():
    ring = []
    ring.append(ring)
    assert count_bytes(ring) < 1000


def test_what_is_collected_while_the_cache_is_locked_is_dropped_without_waiting_for_the_lock():
    """The garbage collector runs finalizers in any thread, also in the one that holds the lock."""

    class Held: ...

    held = [Held()]
    cache = Cache(lambda: held.clear() or 10 * MB)  # (asked for the limit while it is locked)
    weakref.finalize(held[0], cache.forget_at_the_end, "first")
    asks = threading.Thread(target=lambda: cache.get("first", lambda: 1), daemon=True)
    asks.start()
    asks.join(20)
    assert not asks.is_alive()
    assert cache.get("second", lambda: 2) == 2
    assert len(cache) == 1
    assert cache.get("first", lambda: 3) == 3

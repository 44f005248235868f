"""Torch is prepared once, and what it brings is kept out of the garbage collections that follow every run."""

import gc

import pytest
import torch

from vizformer.web.catalogue.torch_setup import prepare_torch


@pytest.mark.sweep
def test_torch_is_frozen_and_keeps_to_one_thread():
    prepare_torch.cache_clear()
    threads = torch.get_num_threads()
    gc.unfreeze()
    try:
        prepare_torch()
        assert torch.get_num_threads() == 1
        assert gc.get_freeze_count() > 100_000  # torch alone brings more
        looked_at = len(gc.get_objects())  # what a collection would go through
        assert looked_at < gc.get_freeze_count() / 10
        gc.unfreeze()
        prepare_torch()
        assert gc.get_freeze_count() == 0  # once is enough
    finally:
        torch.set_num_threads(threads)

"""Trains the models and writes their weights."""

import torch
from safetensors.torch import save_file

from tests.trained_models import TRAINED, file

for name, make in TRAINED.items():
    torch.manual_seed(0)
    save_file({key: value.contiguous() for key, value in make().state_dict().items()}, file(name))

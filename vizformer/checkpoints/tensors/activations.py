"""What other libraries call the activation functions."""

# Theirs -> ours: `transformers` has several names for one function.
ACTIVATIONS = {
    "relu": "relu",
    "relu2": "relu_squared",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
}
THEIRS = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}  # the first of several names

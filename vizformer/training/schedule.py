"""The learning rate of the paper."""


def inverse_square_root(step: int, *, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """lr = factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), for step = 1, 2, ...

    It grows linearly for `warmup` steps and then falls with the inverse square root of the step.
    Source: Vaswani et al. 2017, section 5.3, equation 3.
    """
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))

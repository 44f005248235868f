"""What a model costs: parameters, multiplications, bytes and time, counted, measured, and as papers report them."""

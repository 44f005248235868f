"""Our own format, and the checkpoint that every format becomes."""

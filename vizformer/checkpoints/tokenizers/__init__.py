"""Files of tokenizers read into the `tokenizers` library."""

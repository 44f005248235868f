"""Tensors and their fates: which becomes which, what is missing, what memory they take, what must be asked."""

"""Vectors of tokens and neurons: embeddings, contexts, senses, static word vectors, neurons that fire."""

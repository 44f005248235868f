"""The laboratories of the lesson Tokens and embeddings."""

"""The laboratories of the lesson Masks."""

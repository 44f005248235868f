"""The laboratories of the lesson Encoder meets decoder."""

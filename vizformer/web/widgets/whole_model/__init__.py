"""The reader's whole model as a small drawing: on the path, and beside each part of a lesson."""

"""What the page From other programs shows."""

"""What the page Check your own shows."""

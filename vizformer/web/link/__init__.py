"""What a reader looks at, and the link that says so: the view, its fields, and how each is written and read."""

"""What has another program computed? Its attention as arrays, and its numbers held against a trace."""

"""Numbers of somebody's own program against a trace: where they depart first, and which known mistake gives them."""

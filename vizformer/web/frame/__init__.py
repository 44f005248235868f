"""What every page has around it: the bar, language, what the server does when it starts and ends."""

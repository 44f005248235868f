"""What every page has around it: navigation, language, what the server does when it starts and ends."""

"""Real clients through a real gateway, in this process, against real engines."""

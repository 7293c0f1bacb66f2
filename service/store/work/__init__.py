"""What each stage has left, who does it, and whether anything moves. Starts nothing."""

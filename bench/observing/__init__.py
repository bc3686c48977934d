"""What it costs to see what happens."""

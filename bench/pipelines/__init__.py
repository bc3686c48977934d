"""Tasks of several calls: how well they are recognised, and how soon they end."""

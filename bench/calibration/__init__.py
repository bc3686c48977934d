"""The modelled engine held against real servers: its numbers are fitted to one, and its predictions checked on it."""

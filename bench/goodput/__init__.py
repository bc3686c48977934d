"""Routers side by side on one emulated fleet: how many calls each brings home inside what was promised."""

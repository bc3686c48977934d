"""Inference servers that compute nothing and take the time that a modelled engine takes, over HTTP."""

"""Measuring: real and emulated servers, workloads, and what the router costs."""

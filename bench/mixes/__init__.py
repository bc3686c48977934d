"""Workloads as lists of calls: who sends what when, what it is, and what was promised. Made from a seed."""

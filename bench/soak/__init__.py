"""Soak and load: a real router under a schedule of faults, with every answer checked by its content."""

"""The APIs that clients speak: one file for each, found by method and path."""

from router.surfaces.calls import read_call
from router.surfaces.routes import SURFACES, Kind, Route, error_surface, find

__all__ = ["SURFACES", "Kind", "Route", "error_surface", "find", "read_call"]

"""``fwp bench``: times, memory and compiled kernels; what fails its check is not timed."""

from reimpl.bench.command import Settings, measure

__all__ = ["Settings", "measure"]

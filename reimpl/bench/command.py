"""What ``fwp bench`` was asked for, checked, and which module does it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from records.errors import ConfigError
from reimpl.bench.report import Report

TRAININGS = {
    "retrieval": "reimpl.bench.retrieval",
    "language-model": "reimpl.bench.language_model",
}
"""Benches of whole trainings, by the module that has each."""


@dataclass(frozen=True)
class Settings:
    """The options of ``fwp bench``; ``budget`` is in seconds.

    ``what`` is ``rules``, ``retrieval`` or ``language-model``. ``threads`` None is torch's choice
    for the rules and one for the others; ``repeats`` None is 7 for the rules, 5 for language
    models, and 3 for retrieval and the quick subsets.
    ``check`` also holds every rule, precision and shape against float64; on a GPU every
    configuration of every kernel. ``archs`` only says for what kernels are compiled.
    """

    what: str = "rules"
    device: str = "cpu"
    quick: bool = False
    check: bool = False
    compile_only: bool = False
    archs: tuple[str, ...] = ()
    repeats: int | None = None
    threads: int | None = None
    budget: float = 540.0

    def __post_init__(self) -> None:
        """Refuse what cannot be done, or would be ignored."""
        for name in ("repeats", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"--{name} is {value}; it must be at least 1")
        if not (self.budget > 0 and math.isfinite(self.budget)):
            raise ConfigError(f"--budget is {self.budget:g}; give a positive number of seconds")
        if self.archs and not self.compile_only:
            raise ConfigError("--arch says for what --compile-only compiles; give both")
        if self.what != "rules" and (self.check or self.compile_only or self.device != "cpu"):
            raise ConfigError(
                f"the {self.what} bench runs on the CPU and checks all that it times; leave out "
                "--check, --compile-only and --device"
            )
        if self.compile_only and (self.check or self.device != "cpu"):
            raise ConfigError("--compile-only runs nothing; leave out --check and --device")


def measure(settings: Settings, echo: Callable[[str], None]) -> Report:
    """Do what the settings ask for; ``echo`` is told of progress. Raises ConfigError."""
    if settings.what in TRAININGS:
        of_trainings: Any = import_module(TRAININGS[settings.what])
        report: Report = of_trainings.measure(
            quick=settings.quick, repeats=settings.repeats, threads=settings.threads, echo=echo
        )
        return report
    if settings.compile_only:
        from reimpl.bench.compiling import SHARED_KB, compile_all

        return compile_all(settings.archs or tuple(SHARED_KB), echo=echo)
    if settings.device == "cuda":
        from reimpl.bench.cuda import measure as on_gpu

        return on_gpu(check=settings.check, budget=settings.budget, echo=echo)
    from reimpl.bench.cpu import measure as on_cpu

    return on_cpu(
        quick=settings.quick,
        check=settings.check,
        repeats=settings.repeats,
        threads=settings.threads,
        echo=echo,
    )

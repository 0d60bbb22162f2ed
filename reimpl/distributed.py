"""Train one language model on several devices or machines; run by torchrun or Slurm.

    torchrun --nproc-per-node 2 -m reimpl.distributed delta-network-small --home workspace

trains that point of ``fwp rerun language-model --scale paper`` and leaves its checkpoint in the
workspace, where ``fwp rerun language-model --scale paper --model delta-network-small`` finds it,
evaluates it and records the run. Every process runs this module; the environment that torchrun or
Slurm sets says which one it is.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch.distributed

from records.errors import ConfigError, FwpError
from reimpl.experiments.base import ProgressKind
from reimpl.runner import Selection, plan
from reimpl.training import Devices


def devices_of(environment: Mapping[str, str], accelerator: str) -> Devices:
    """Return the devices that torchrun's or Slurm's variables tell of.

    Raises ConfigError where neither has started this process.
    """
    if "WORLD_SIZE" in environment and "LOCAL_WORLD_SIZE" in environment:
        world, each = int(environment["WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
    elif "SLURM_NTASKS" in environment:
        world = int(environment["SLURM_NTASKS"])
        each = world // int(environment.get("SLURM_NNODES", 1))
    else:
        raise ConfigError(
            "this module is started by torchrun or srun, such as: torchrun --nproc-per-node 2 -m "
            "reimpl.distributed delta-network-small; for one device use fwp rerun language-model"
        )
    return Devices(accelerator, each, world // each, "ddp")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the point that the arguments name; return 0, or 2 for unusable input."""
    options = _parser().parse_args(arguments)
    try:
        _train(options)
    except FwpError as error:
        print(f"reimpl.distributed: {error}", file=sys.stderr)
        return 2
    leave_group()
    return 0


def leave_group() -> None:
    """Wait for the other processes of the training, then leave the group that it joined.

    A process that ends with the group's threads still running is now and then aborted by them,
    which its launcher takes for a failed training.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def _train(options: argparse.Namespace) -> None:
    from reimpl.experiments.language_model_run import only_train

    devices = devices_of(os.environ, options.accelerator)
    selection = Selection(
        scale=options.scale,
        seeds=options.seed,
        lines=(options.row,),
        as_released=options.as_released,
    )
    jobs = plan(["language-model"], selection, options.home.resolve() / "runs")
    job = next(job for job in jobs if job.point.seed == options.seed)
    job.folder.mkdir(parents=True, exist_ok=True)
    first = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))) == 0

    def report(line: str, *, kind: ProgressKind = "progress") -> None:
        if first:
            print(line, flush=True)

    only_train(job.point, job.folder, report, devices)  # type: ignore[arg-type]
    report(f"the checkpoint is in {job.folder}; evaluate and record it with\n{_next(options)}")


def _next(options: argparse.Namespace) -> str:
    released = " --as-released" if options.as_released else ""
    return (
        f"  fwp rerun language-model --scale {options.scale} --model {options.row} "
        f"--seeds {options.seed}{released} --home {options.home}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun -m reimpl.distributed", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("row", metavar="ROW", help="such as delta-network-small")
    parser.add_argument("--scale", choices=("quick", "laptop", "paper"), default="paper")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--as-released", action="store_true")
    parser.add_argument("--accelerator", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("FWP_HOME", "workspace")))
    return parser


if __name__ == "__main__":
    sys.exit(main())

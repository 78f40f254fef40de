"""One process or several: the same loop, through the few verbs that differ."""

from __future__ import annotations

import atexit
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from r2et.errors import InputError, UnavailableError, require


class Distributed(ABC):
    """The processes that train one model: `size` processes, of which this is number `rank`."""

    rank: int
    size: int
    device: torch.device

    @abstractmethod
    def setup(self, module: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        """The module as it is to be called, and its optimiser."""

    @abstractmethod
    def backward(self, loss: Tensor, weights: Sequence[Tensor] | None) -> None:
        """Gradients of all processes' losses, averaged.

        weights: those whose gradients are asked for, None for all. A penalty has a graph to the
        inputs, too, and their gradient, which nobody needs, is a third of a convolution's work.
        """

    @abstractmethod
    def mean(self, value: Tensor) -> Tensor:
        """The mean of a number over the processes, without a graph."""

    @abstractmethod
    def wait(self) -> None:
        """Until all are here."""


@final
class SingleProcess(Distributed):
    """One process, on the device where the model is."""

    def __init__(self, device: torch.device) -> None:
        self.rank, self.size, self.device = 0, 1, device

    def setup(self, module: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        return module, optimizer

    def backward(self, loss: Tensor, weights: Sequence[Tensor] | None) -> None:
        loss.backward(inputs=weights)  # type: ignore[no-untyped-call]

    def mean(self, value: Tensor) -> Tensor:
        return value.detach()

    def wait(self) -> None:
        return None


@final
class FabricProcesses(Distributed):
    """The processes of a lightning_fabric.Fabric: one device, or data-parallel over many."""

    def __init__(self, fabric: Any) -> None:
        strategy = type(fabric.strategy).__name__
        is_valid = strategy in ("SingleDeviceStrategy", "DDPStrategy")
        require(is_valid, "fit", "fabric", "one with a single device or strategy='ddp'", strategy)
        before = torch.distributed.is_available() and torch.distributed.is_initialized()
        fabric.launch()
        if not before:
            atexit.register(_end_group)
        self.fabric, self.device = fabric, fabric.device
        self.rank, self.size = fabric.global_rank, fabric.world_size

    def setup(self, module: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        wrapped, optimizer = self.fabric.setup(module, optimizer)
        return wrapped, optimizer

    def backward(self, loss: Tensor, weights: Sequence[Tensor] | None) -> None:
        self.fabric.backward(loss, inputs=weights)

    def mean(self, value: Tensor) -> Tensor:
        mean: Tensor = self.fabric.all_reduce(value.detach().clone(), reduce_op="mean")
        return mean

    def wait(self) -> None:
        self.fabric.barrier()


def _end_group() -> None:
    """A group that nobody ends may abort its process at the exit, over threads still running."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def distributed_by(fabric: Any, device: torch.device) -> Distributed:
    """Those of a given Fabric, those that torchrun has started, or this one alone."""
    if fabric is not None:
        is_valid = all(
            hasattr(fabric, name) for name in ("setup", "launch", "all_reduce", "strategy")
        )
        require(is_valid, "fit", "fabric", "a lightning_fabric.Fabric", type(fabric).__name__)
        return FabricProcesses(fabric)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ:
        return FabricProcesses(_torchrun_fabric(device))
    return SingleProcess(device)


def _torchrun_fabric(device: torch.device) -> Any:
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.strategies.ddp import DDPStrategy
    except ImportError as error:
        expected = "installed to train with torchrun (pip install 'r2et[cluster]')"
        raise UnavailableError(f"fit: lightning_fabric must be {expected}, got {error}.") from error
    world = int(os.environ["WORLD_SIZE"])
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    if world % here:
        raise InputError(f"fit: every node must run {here} processes, got {world} in all.")
    # Parts of a network may stay out of the loss: a Siamese network's single-input classifier.
    return Fabric(
        accelerator="cuda" if device.type == "cuda" else "cpu",
        devices=here,
        num_nodes=world // here,
        strategy=DDPStrategy(find_unused_parameters=True),
    )

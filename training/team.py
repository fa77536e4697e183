"""The processes of one run, which share every step's batches and take the same step.

A step of several processes is the step of one: each learns from its share of the very same batches,
the gradients are added up, and all move by the sum. This is what
`torch.nn.parallel.DistributedDataParallel` does too; it is done by hand here because the loss of a
batch is a mean over what was observed in it, so shares of it weigh by what they hold, and because a
share may be empty. torchrun says who is who (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`).
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from training.errors import DataError, PeerError
from training.exit_status import FAILED, status_of

T = TypeVar("T")

TOLD_SECONDS = 10.0
"""How long a process that failed waits until the leader has said so."""

FAILURE, LEADER_SPOKE = "rancast/failure", "rancast/leader-spoke"
"""Keys of the store: what failed first, and that the leader has reported it."""


@dataclass(frozen=True)
class Share:
    """What one process learns from in a step.

    Attributes:
        parts: The batches of the step that it takes part in.
        nth: Which of the slices of each of these batches it takes.
        slices: Into how many slices of windows each is cut; 1 for whole batches.
    """

    parts: range
    nth: int
    slices: int

    def rows(self, windows: int) -> tuple[int, int]:
        """First row and the one after the last of a batch of so many; none where there are few."""
        return windows * self.nth // self.slices, windows * (self.nth + 1) // self.slices


@dataclass(frozen=True)
class Team:
    """One process and those beside it; with a size of 1 everything here is free.

    Attributes:
        rank: Number of this process, from 0.
        size: How many there are.
        store: Where a process that fails leaves word.
    """

    rank: int = 0
    size: int = 1
    store: Any = field(default=None, repr=False)

    @property
    def leads(self) -> bool:
        """Whether this is the one process that writes and speaks."""
        return self.rank == 0

    def share(self, parts: int) -> Share:
        """This process's share of a step of so many batches.

        As many whole batches as divide evenly, since each process draws all that it takes part in;
        processes beyond that take slices of them. Three processes and two batches cut both in
        three, four processes take halves of one each.
        """
        groups = math.gcd(parts, self.size)
        return Share(
            range(self.rank % groups, parts, groups), self.rank // groups, self.size // groups
        )

    def add_up(self, figures: Tensor) -> Tensor:
        """The sum over all processes, the same in each.

        Args:
            figures: Of one shape in all processes; changed in place.

        Raises:
            PeerError: Another process has failed.
        """
        if self.size > 1:
            self._with_others(lambda: dist.all_reduce(figures))
        return figures

    def add_gradients(self, parameters: Mapping[str, Tensor], *figures: float) -> tuple[float, ...]:
        """Put the sum over all processes into every gradient; returns those of the figures.

        A parameter without a gradient in every process keeps none, as in a run of one process.

        Raises:
            PeerError: Another process has failed.
        """
        if self.size == 1:
            return figures
        tensors = list(parameters.values())
        parts = [t.grad if t.grad is not None else torch.zeros_like(t) for t in tensors]
        told = [*(float(t.grad is not None) for t in tensors), *figures]
        # One message, for a small one takes as long as a large one.
        flat = torch.cat([*(part.flatten() for part in parts), parts[0].new_tensor(told)])
        self.add_up(flat)
        sizes = [*(t.numel() for t in tensors), len(tensors), len(figures)]
        *sums, has, totals = torch.split(flat, sizes)
        for tensor, gradient, count in zip(tensors, sums, has.tolist(), strict=True):
            tensor.grad = gradient.view_as(tensor) if count else None
        return tuple(totals.tolist())

    def tell(self, value: T) -> T:
        """The leader's value, in all processes.

        Raises:
            PeerError: Another process has failed.
        """
        if self.size == 1:
            return value
        box: list[Any] = [value if self.leads else None]
        self._with_others(lambda: dist.broadcast_object_list(box, src=0))
        told: T = box[0]
        return told

    def check_same(self, value: str, what: str) -> None:
        """See that a value is the same in all processes.

        Raises:
            DataError: It is not; raised in all of them.
            PeerError: Another process has failed.
        """
        if self.size == 1:
            return
        found = self._gather(value)
        others = [rank for rank, other in enumerate(found) if other != found[0]]
        if others:
            raise DataError(
                f"expected the same {what} in all {self.size} processes, got others in process "
                f"{', '.join(map(str, others))} than in process 0; give all of them the same "
                "command and the same files"
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """All processes get through what is inside, or none does.

        Raises:
            PeerError: Another process failed inside; this one did not.
        """
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        if self.size > 1:
            told = None if failure is None else (str(failure), status_of(failure))
            for rank, other in enumerate(self._gather(told)):
                if other is not None and failure is None:
                    raise self._peer_error(rank, *other)
        if failure is not None:
            raise failure

    def _gather(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.size
        self._with_others(lambda: dist.all_gather_object(found, value))
        return found

    def _with_others(self, operation: Callable[[], object]) -> None:
        """Do what needs all processes; where one is gone, say why it went if it left word."""
        try:
            operation()
        except RuntimeError as error:
            with suppress(RuntimeError):  # the store may have gone with its process
                if self.store.check([FAILURE]):
                    raise self._peer_error(**json.loads(self.store.get(FAILURE))) from error
            # Gloo's words begin with a place in its source and end with general advice.
            words = re.sub(r"^\[[^]]*\] ", "", str(error)).partition(". ")[0]
            raise PeerError(
                f"process {self.rank} of {self.size} lost another one, which left no word, as when "
                f"it is killed or the network fails ({words})",
                FAILED,
            ) from error

    def _peer_error(self, rank: int, reason: str, status: int) -> PeerError:
        return PeerError(f"process {rank} of {self.size} failed: {reason}", status)

    def leave_word(self, error: BaseException) -> None:
        """Tell the others why this process fails; the first word counts."""
        if isinstance(error, PeerError):
            return
        word = {
            "rank": self.rank,
            "reason": str(error) or type(error).__name__,
            "status": status_of(error),
        }
        with suppress(RuntimeError):
            self.store.compare_set(FAILURE, "", json.dumps(word))

    def let_leader_speak(self, error: BaseException) -> None:
        """Wait until the leader has reported, for torchrun ends all others when a process ends."""
        with suppress(RuntimeError):
            if self.leads:
                self.store.set(LEADER_SPOKE, "yes")
            elif not isinstance(error, PeerError):
                self.store.wait([LEADER_SPOKE], timedelta(seconds=TOLD_SECONDS))


ALONE = Team()


@contextmanager
def joined_team() -> Iterator[Team]:
    """The team that torchrun has started this process for; a team of one without torchrun.

    Tensors on the CPU, where training computes, go by Gloo; torch has NCCL for those on a GPU.

    Raises:
        ValueError: torchrun's environment is not whole.
        PeerError: The others could not be reached.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    # Its functions take the group that there is when they are defined for their default, and would
    # keep it open after it was left. The first step of an optimiser loads them.
    importlib.import_module("torch.distributed.nn.functional")
    store, rank, size = next(rendezvous("env://"))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        # torchrun's own store outlives an attempt, and has the addresses of the one before.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"attempt-{attempt}", store)  # type: ignore[attr-defined]
    team = Team(rank, size, store)
    try:
        dist.init_process_group(store=store, rank=rank, world_size=size)
    except RuntimeError as error:
        raise PeerError(
            f"process {rank} of {size} could not reach the others: {error}", FAILED
        ) from error
    try:
        yield team
    except BaseException as error:
        team.leave_word(error)
        # First, since the others wait for this process in whatever they do together.
        dist.destroy_process_group()
        team.let_leader_speak(error)
        raise
    dist.destroy_process_group()

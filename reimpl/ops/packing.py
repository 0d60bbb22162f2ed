"""Cut sequences into chunks and put them back.

Chunks lie in the order in which a scan over the length meets them: first the first chunk of every
sequence, then the second of each that has one, and so on. A step of the scan is therefore one
slice, whether the sequences are equally long or packed end to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor


class Step(NamedTuple):
    """Chunks ``start`` to ``stop``: the next one of each sequence that has one."""

    start: int
    stop: int


class Group(NamedTuple):
    """Steps ``first`` to ``last`` (exclusive) of a scan, handled at a time."""

    first: int
    last: int
    steps: tuple[Step, ...]

    @property
    def start(self) -> int:
        """The group's first chunk."""
        return self.steps[0].start

    @property
    def chunks(self) -> int:
        """Chunks in the group."""
        return self.steps[-1].stop - self.start


class Packing(NamedTuple):
    """Where each token goes.

    For packed sequences ``tokens`` ``[chunks · size]`` is the token at each place, −1 at padding,
    and ``order`` lists the sequences by falling length; both are None where lengths are equal.
    """

    length: int
    size: int
    steps: tuple[Step, ...]
    tokens: Tensor | None = None
    order: Tensor | None = None

    def groups(self, most: int) -> Iterator[Group]:
        """Yield the scan in groups of about ``most`` chunks, at least one step each."""
        first = 0
        while first < len(self.steps):
            last = first + 1
            limit = self.steps[first].start + most
            while last < len(self.steps) and self.steps[last].stop <= limit:
                last += 1
            yield Group(first, last, self.steps[first:last])
            first = last

    def pack(self, x: Tensor, group: Group, dtype: torch.dtype) -> Tensor:
        """Return the group's part of ``[batch, length, heads, ...]``, zero where there is no token.

        The result is ``[chunks, heads, size, ...]``.
        """
        packed = x.new_empty((group.chunks, x.shape[2], self.size, *x.shape[3:]), dtype=dtype)
        self.pack_into(packed, x, group)
        return packed

    def pack_into(self, packed: Tensor, x: Tensor, group: Group) -> None:
        """Write the result of ``pack`` into a tensor or view of its shape."""
        if self.tokens is not None:
            tokens = self._tokens(group)
            rows = x[0][tokens.clamp(min=0)]
            rows[tokens < 0] = 0
            packed.copy_(torch.unflatten(rows, 0, (-1, self.size)).transpose(1, 2))
            return
        chunks = torch.unflatten(packed, 0, (len(group.steps), -1))
        for steps, width, view in self._views(x, group):
            chunks[steps, :, :, :width] = view
            chunks[steps, :, :, width:] = 0

    def unpack_into(self, x: Tensor, packed: Tensor, group: Group) -> None:
        """Write the group's chunks ``[chunks, heads, size, ...]`` to their places in ``x``."""
        if self.tokens is not None:
            tokens = self._tokens(group)
            there = tokens >= 0
            rows = packed.transpose(1, 2).flatten(0, 1)
            x[0, tokens[there]] = rows[there].to(x.dtype)
            return
        chunks = torch.unflatten(packed, 0, (len(group.steps), -1))
        for steps, width, view in self._views(x, group):
            view.copy_(chunks[steps, :, :, :width])

    def sort(self, states: Tensor) -> Tensor:
        """Return ``[sequences, ...]`` in the order of the scan, as a copy."""
        return states.clone() if self.order is None else states[self.order]

    def unsort(self, states: Tensor) -> Tensor:
        """Undo ``sort``."""
        if self.order is None:
            return states
        return torch.empty_like(states).index_copy_(0, self.order, states)

    def _tokens(self, group: Group) -> Tensor:
        assert self.tokens is not None
        first = group.start * self.size
        return self.tokens[first : first + group.chunks * self.size]

    def _views(self, x: Tensor, group: Group) -> Iterator[tuple[slice, int, Tensor]]:
        """Yield the group's whole chunks, then a partial last one: steps, width, view of x.

        A view is ``[steps, batch, heads, width, ...]``.
        """
        start, stop = group.first * self.size, min(group.last * self.size, self.length)
        whole, rest = divmod(stop - start, self.size)
        for steps, width in ((slice(0, whole), self.size), (slice(whole, whole + 1), rest)):
            if width and steps.stop > steps.start:
                end = start + (steps.stop - steps.start) * width
                view = torch.unflatten(x[:, start:end], 1, (-1, width))
                yield steps, width, view.permute(1, 0, 3, 2, *range(4, view.ndim))
                start = end


def most_chunks(batch: int, length: int, sequences: int | None, size: int) -> int:
    """Return how many chunks there can be: exact without ``sequences``, else an upper bound."""
    if sequences is None:
        return batch * -(-length // size)
    return (length + sequences * (size - 1)) // size


def plan(batch: int, length: int, cu_seqlens: Tensor | None, size: int) -> Packing:
    """Return the packing of ``batch`` sequences, or of those that ``cu_seqlens`` delimits."""
    if cu_seqlens is None:
        count = -(-length // size)
        steps = tuple(Step(i * batch, (i + 1) * batch) for i in range(count))
        return Packing(length, size, steps)
    bounds = cu_seqlens.cpu().long()
    lengths = bounds.diff()
    counts = (lengths + size - 1) // size
    order = counts.argsort(descending=True, stable=True)
    active = [int((counts > i).sum()) for i in range(int(counts.max()))]
    ends = torch.tensor(active).cumsum(0)
    steps = tuple(Step(int(e) - n, int(e)) for e, n in zip(ends, active, strict=True))
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    position = torch.arange(length) - bounds[sequence]
    firsts = torch.tensor([step.start for step in steps])
    places = (firsts[position // size] + rank[sequence]) * size + position % size
    tokens = torch.full((int(counts.sum()) * size,), -1)
    tokens[places] = torch.arange(length)
    return Packing(length, size, steps, tokens.to(cu_seqlens.device), order.to(cu_seqlens.device))

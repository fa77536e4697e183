"""The input tensors of a request by name, checked as they are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidRequestError
from service.kserve.messages import InferRequest
from service.kserve.tensors import TEXT, Tensor
from service.series import pointer


class InputTensors:
    """The tensors of a request, each checked as it is taken; what does not fit is refused.

    Args:
        request: The request, which says where each tensor stands.
        tensors: Its tensors by name.
    """

    def __init__(self, request: InferRequest, tensors: Mapping[str, Tensor]) -> None:
        self._positions = {one.name: position for position, one in enumerate(request.inputs)}
        self._tensors = tensors

    def check_known(self, known: Sequence[str]) -> None:
        """Refuse tensors of other names.

        Raises:
            InvalidRequestError: There is one.
        """
        for name, position in self._positions.items():
            if name not in known:
                raise InvalidRequestError(
                    pointer("inputs", position, "name"),
                    f"expected one of {', '.join(known)}, got {name!r}",
                )

    def place(self, name: str) -> str:
        """JSON Pointer to a tensor, or to all where there is none of that name."""
        return pointer("inputs", self._positions[name]) if name in self._positions else "/inputs"

    def numbers(self, name: str, dimensions: int) -> NDArray[Any] | None:
        """Numbers of a tensor, None where it was not sent."""
        tensor = self._tensors.get(name)
        if tensor is None:
            return None
        self._check(tensor, dimensions, tensor.datatype != TEXT, "numbers")
        return tensor.values

    def texts(self, name: str, count: int) -> list[str] | None:
        """Texts of a tensor in one dimension, None where it was not sent."""
        tensor = self._tensors.get(name)
        if tensor is None:
            return None
        self._check(tensor, 1, tensor.datatype == TEXT, TEXT)
        if len(tensor.values) != count:
            raise InvalidRequestError(
                self.place(name), f"expected {count} names, got {len(tensor.values)}"
            )
        return [str(text) for text in tensor.values]

    def one_each(self, name: str, batch: int) -> list[Any] | None:
        """Numbers, one a series; one alone holds for all."""
        values = self.numbers(name, dimensions=1)
        if values is None:
            return None
        if len(values) not in (1, batch):
            raise InvalidRequestError(
                self.place(name), f"expected 1 or {batch} numbers, got {len(values)}"
            )
        if name == "start_ms" and values.dtype.kind == "f":
            raise InvalidRequestError(self.place(name), "expected whole milliseconds in INT64")
        numbers: list[Any] = np.broadcast_to(values, (batch,)).tolist()
        return numbers

    def _check(self, tensor: Tensor, dimensions: int, fits: bool, words: str) -> None:
        if not fits or tensor.values.ndim != dimensions:
            raise InvalidRequestError(
                self.place(tensor.name),
                f"expected {words} in {dimensions} dimensions, got {tensor.datatype} in shape "
                f"{list(tensor.values.shape)}",
            )

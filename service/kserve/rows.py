"""Lists of rows of numbers in a body, as arrays as soon as they are checked.

Axis legend: K KPIs, T samples.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import FailFast, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

_Row = Annotated[list[float | None], FailFast(), Field(min_length=1)]
_Listed = Annotated[
    list[_Row],
    FailFast(),
    Field(
        min_length=1,
        description="One row a step, with one value a KPI; null where nothing is known.",
    ),
]


class _AsArray:
    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_after_validator_function(_to_array, handler.generate_schema(_Listed))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema)


def _to_array(rows: list[list[float | None]]) -> NDArray[np.float64]:
    if len({len(row) for row in rows}) > 1:
        raise PydanticCustomError("rows", "expected rows of one length")
    return np.array(rows, dtype=np.float64)  # null becomes NaN


# (T, K)
Rows = Annotated[NDArray[np.float64], _AsArray()]

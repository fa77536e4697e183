"""The forms in which forecasts are answered, and which of them a client wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fastapi import Request

from model.predictor import Forecast, ModelIdentity
from service.answers import forecast_answer
from service.bodies import JSON_MEDIA_TYPE
from service.codecs.arrow_answers import forecast_stream
from service.codecs.arrow_stream import ARROW_MEDIA_TYPE
from service.codecs.negotiation import preferred_type


class Encode(Protocol):
    """Writes forecasts; called from any thread."""

    def __call__(
        self,
        model: ModelIdentity,
        forecasts: Sequence[Forecast],
        names: Sequence[Sequence[str]],
        *,
        now_ms: int,
    ) -> bytes:
        """The body of an answer; see `service.answers.forecast_answer`."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One form of an answer.

    Attributes:
        media_type: Its Content-Type.
        encode: Writes it.
    """

    media_type: str
    encode: Encode


JSON_FORM = AnswerForm(JSON_MEDIA_TYPE, forecast_answer)
ARROW_FORM = AnswerForm(ARROW_MEDIA_TYPE, forecast_stream)
_FORMS = {form.media_type: form for form in (JSON_FORM, ARROW_FORM)}


def answer_form(request: Request) -> AnswerForm:
    """The form that the client's Accept header likes best; JSON where it does not mind.

    Raises:
        NotAcceptableError: It takes none.
    """
    # Several lines of a header are one list.
    accept = ",".join(request.headers.getlist("accept")) or None
    return _FORMS[preferred_type(accept, tuple(_FORMS))]

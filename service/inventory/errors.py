"""What can go wrong with an inventory."""

from __future__ import annotations

from service.errors import ServiceError


class InventoryError(ServiceError):
    """What is inside cannot be told, or may not be shipped; the message says which part and why."""


class LicenceError(InventoryError):
    """A part without a licence, or with one that nobody has looked at."""

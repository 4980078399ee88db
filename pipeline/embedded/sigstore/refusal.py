"""How the services say no: an HTTP status and one sentence that holds nothing secret."""

from __future__ import annotations

from pipeline.errors import ServiceError


class RefusedError(ServiceError):
    """A request that a service will not do; `status` is what HTTP answers."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status

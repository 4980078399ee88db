"""Below an exchange: connections whose answers' heads are bounded in time, and what a broken one means."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from types import TracebackType

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

from pipeline.adapters.registry_retry import Temporary
from pipeline.adapters.registry_url import load_origin
from pipeline.errors import HostileInputError, ServiceError


class _HttpConnection(HTTPConnection):
    """Bounds the time of a whole answer's head: a socket's time-out alone bounds only each silence in it."""

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        with _HeadWatchdog(self):
            return super().getresponse()


class _HttpsConnection(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        with _HeadWatchdog(self):
            return super().getresponse()


class HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class _HeadWatchdog:
    def __init__(self, connection: HTTPConnection) -> None:
        seconds = connection.timeout if isinstance(connection.timeout, (int, float)) else 60.0
        self._timer = threading.Timer(seconds, self._cut, (connection,))
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    @staticmethod
    def _cut(connection: HTTPConnection) -> None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            return


def make_failure(error: Exception, url: str, where: str) -> Exception:
    """The pipeline's error for a transport's exception. urllib3's own text is dropped: it can hold a signed URL."""
    host = load_origin(url, where).host
    cause = error.args[1] if len(error.args) > 1 else error.args[0] if error.args else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ServiceError(
            f"the TLS certificate of {host} is not valid: {cause.verify_message}",
            where=where,
            remedy="check the host's name and this machine's clock",
        )
    if type(cause) in (http.client.HTTPException, http.client.LineTooLong):
        return HostileInputError(f"an answer of {host} with too many or too long headers", where=where)
    if isinstance(error, (urllib3.exceptions.LocationParseError, urllib3.exceptions.InvalidHeader)):
        return HostileInputError(f"an answer of {host} with a malformed header", where=where)
    what, remedy = _network_failure(error, host)
    return Temporary(ServiceError(what, where=where, remedy=remedy))


def _network_failure(error: Exception, host: str) -> tuple[str, str]:
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return (
            f"no connection to {host}",
            "check the network, and that the registry runs (nox -s status for the local one)",
        )
    if isinstance(error, (urllib3.exceptions.TimeoutError, TimeoutError)):
        return f"{host} did not answer in time", "wait and run again; the registry may be overloaded"
    return f"the connection to {host} broke off", "wait and run again"

"""Media types of what a registry serves."""

from __future__ import annotations

import pytest

from pipeline.adapters.registry_document import load_media_type, verify_media_type
from pipeline.errors import HostileInputError
from pipeline.model.oci import DOCKER_INDEX, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST


@pytest.mark.parametrize(
    ("header", "media_type"),
    [(None, ""), ("", ""), ("Text/HTML; charset=utf-8", "text/html"), (f" {OCI_MANIFEST} ;x", OCI_MANIFEST)],
)
def test_parameters_are_dropped(header: str | None, media_type: str) -> None:
    assert load_media_type(header) == media_type


@pytest.mark.parametrize("media_type", [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_INDEX])
def test_a_body_may_leave_its_type_out(media_type: str) -> None:
    verify_media_type(b"{}", media_type, "x")
    verify_media_type(f'{{"mediaType":"{media_type}"}}'.encode(), media_type, "x")


@pytest.mark.parametrize(
    ("raw", "media_type"),
    [
        (b"{}", "application/json"),
        (b"{}", ""),
        (b"[]", OCI_MANIFEST),
        (b"7", OCI_MANIFEST),
        (b'{"mediaType":7}', OCI_MANIFEST),
        (b'{"mediaType":null}', OCI_MANIFEST),
        (f'{{"mediaType":"{OCI_INDEX}"}}'.encode(), OCI_MANIFEST),
        (b'"' + b"\xff", OCI_MANIFEST),
    ],
)
def test_a_type_that_does_not_fit_is_refused(raw: bytes, media_type: str) -> None:
    with pytest.raises(HostileInputError) as raised:
        verify_media_type(raw, media_type, "here")
    assert raised.value.where == "here"

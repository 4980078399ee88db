"""The referrers tag's index, and the Link header, as pure functions."""

from __future__ import annotations

import json

import pytest

from pipeline.adapters.registry_referrers import (
    fallback_reference,
    load_entries,
    load_next,
    make_fallback_index,
    referrer_descriptor,
    sort_referrers,
)
from pipeline.errors import HostileInputError, StageError
from pipeline.model.oci import OCI_CONFIG, OCI_INDEX, OCI_MANIFEST
from pipeline.model.reference import Reference
from tests.fakes.registry_content import descriptor_of, make_image

FIRST, SECOND = sorted((descriptor_of(b"a"), descriptor_of(b"b")), key=lambda descriptor: descriptor.digest)


def test_the_tag_is_the_digest_with_a_dash() -> None:
    digest = "sha256:" + "a" * 64
    assert fallback_reference(Reference("r.test", "x", "1", digest)).selector == "sha256-" + "a" * 64
    with pytest.raises(StageError, match="digest"):
        fallback_reference(Reference("r.test", "x", "1"))


def test_a_referrer_without_an_artifact_type_has_its_configs() -> None:
    assert referrer_descriptor(make_image(b"x")).artifact_type == OCI_CONFIG
    assert referrer_descriptor(make_image(b"x", artifactType="application/y")).artifact_type == "application/y"


def test_entries_are_sorted_and_listed_once() -> None:
    assert sort_referrers([SECOND, FIRST, SECOND], "x") == (FIRST, SECOND)


@pytest.mark.parametrize("lie", [{"size": 7}, {"media_type": "application/x"}])
def test_two_entries_of_one_digest_may_not_differ(lie: dict[str, object]) -> None:
    with pytest.raises(HostileInputError, match="differ"):
        sort_referrers([FIRST, FIRST.model_copy(update=lie)], "x")


def test_an_index_is_the_same_whatever_the_order() -> None:
    made = make_fallback_index([FIRST, SECOND], None, "x")
    assert made == make_fallback_index([SECOND, FIRST], None, "x")
    assert load_entries(made.raw, made.media_type, "x") == (FIRST, SECOND)
    assert json.loads(made.raw)["mediaType"] == OCI_INDEX


def test_the_tag_of_an_image_is_no_index() -> None:
    with pytest.raises(StageError, match="holds"):
        load_entries(make_image(b"x").raw, OCI_MANIFEST, "x")


@pytest.mark.parametrize(
    ("link", "url"),
    [(None, None), ('</v2/x?n=1>; rel="next"', "/v2/x?n=1"), (" <https://r.test/>;rel=next ", "https://r.test/")],
)
def test_the_next_page(link: str | None, url: str | None) -> None:
    assert load_next(link, "x") == url


@pytest.mark.parametrize(
    "link", ["", "/v2/x", '</a>; rel="prev"', '</a>; rel="next", </b>; rel="next"', "<<a>>; rel=next"]
)
def test_a_link_that_is_not_one_next_page_is_refused(link: str) -> None:
    with pytest.raises(HostileInputError):
        load_next(link, "x")

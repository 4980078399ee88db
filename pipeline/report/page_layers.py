"""Layers by size and sharing: a picture that scales with the page, the table beside it, and the sizes of the images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline.report.contents import layer_origins
from pipeline.report.facts import ImageFacts, ReleaseFacts
from pipeline.report.page_markup import Column, Detail, Markup, code, element, join, number, row, short, table

BAR_PX = 28
MIN_PERCENT, LABEL_PERCENT = 0.4, 7.0
MAX_NAMED = 12


def layers_part(facts: ReleaseFacts, detail: Detail) -> Markup:
    """The picture, its legend, the table of layers, sizes per image, and what near-identical layers cost."""
    sizes = facts.sizes
    numbers = {layer.digest: index for index, layer in enumerate(sizes.layers, 1)}
    saved = sum(layer.size * (len(layer.images) - 1) for layer in sizes.layers)
    return join(
        [
            element(
                "p",
                f"All images are {sizes.sum_bytes:,} bytes compressed; with shared layers counted once, "
                f"{sizes.layers_once_bytes:,}. Sharing layers saves {saved:,}.",
            ),
            _figure(facts, numbers),
            _layer_table(facts, numbers, detail),
            _image_table(facts, detail),
            *_near_identical(facts, numbers),
        ]
    )


def _figure(facts: ReleaseFacts, numbers: Mapping[str, int]) -> Markup:
    legend = element(
        "figcaption",
        element("span", "", class_="key shared"),
        " striped: shared by several images; ",
        element("span", "", class_="key own"),
        " plain: in one image. One scale for all images; numbers are those of the table. A layer too small to see is "
        "drawn as a thin line.",
    )
    longest = max((_layer_bytes(image) for image in facts.images), default=0) or 1
    bars = (_bar(index, image, facts, numbers, longest) for index, image in enumerate(facts.images))
    return element("figure", *bars, legend)


def _bar(index: int, image: ImageFacts, facts: ReleaseFacts, numbers: Mapping[str, int], longest: int) -> Markup:
    """One image. Places across are in percent, so the picture scales with the page and its text does not."""
    shared = {layer.digest for layer in facts.sizes.layers if len(layer.images) > 1}
    layers = image.manifest.view.layers
    parts = [] if index else [_pattern()]
    left = 0.0
    for layer in layers:
        width = 100 * layer.size / longest
        parts += _segment(left, width, "shared" if layer.digest in shared else "own", str(numbers[layer.digest]))
        left += width
    pieces = ", ".join(f"{numbers[layer.digest]} ({layer.size:,} bytes)" for layer in layers[:MAX_NAMED])
    said = f"{len(layers)} layers, {sum(layer.digest in shared for layer in layers)} of them shared: {pieces}."
    names = (f"picture-{index}-title", f"picture-{index}-desc")
    return join(
        [
            element("p", f"{image.id}: {_layer_bytes(image):,} bytes", class_="bar"),
            element(
                "svg",
                element("title", f"Layers of {image.id} by size", id=names[0]),
                element("desc", said, id=names[1]),
                *parts,
                width="100%",
                height=BAR_PX + 2,
                role="img",
                aria_labelledby=names[0],
                aria_describedby=names[1],
            ),
        ]
    )


def _layer_bytes(image: ImageFacts) -> int:
    return sum(layer.size for layer in image.manifest.view.layers)


def _pattern() -> Markup:
    stripe = element("rect", width=8, height=8, class_="shared") + element("rect", width=2, height=8, class_="stripe")
    return element(
        "defs",
        element(
            "pattern",
            Markup(stripe),
            id="stripes",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


def _segment(left: float, width: float, kind: str, label: str) -> Iterator[Markup]:
    x, across = f"{min(left, 100 - MIN_PERCENT):.3f}%", f"{max(width, MIN_PERCENT):.3f}%"
    yield element("rect", x=x, y=1, width=across, height=BAR_PX, class_=f"piece {kind}")
    if width >= LABEL_PERCENT:
        middle = f"{left + width / 2:.3f}%"
        if kind == "shared":
            yield element("circle", cx=middle, cy=BAR_PX // 2 + 1, r=11, class_="plate")
        yield element("text", label, x=middle, y=BAR_PX // 2 + 6, class_=f"label {kind}")


def _layer_table(facts: ReleaseFacts, numbers: Mapping[str, int], detail: Detail) -> Markup:
    origins: dict[str, str] = {}
    for image in facts.images:
        for layer, origin in zip(image.manifest.view.layers, layer_origins(image), strict=True):
            origins.setdefault(layer.digest, origin)
    columns = [
        Column("no."),
        Column("layer", "wide"),
        Column("compressed bytes", "number"),
        Column("in images", "names"),
        Column("what the history says"),
    ]
    rows = (
        row(
            str(numbers[layer.digest]),
            code(layer.digest),
            number(layer.size),
            ", ".join(layer.images),
            short(origins.get(layer.digest, ""), detail, "config.json"),
        )
        for layer in facts.sizes.layers
    )
    return table("Every distinct layer", columns, rows, detail, "sizes.json", "layers stack")


def _image_table(facts: ReleaseFacts, detail: Detail) -> Markup:
    columns = [
        Column("image"),
        Column("compressed bytes", "number"),
        Column("in no other image", "number"),
        Column("config bytes", "number"),
        Column("layers", "number"),
    ]
    rows = (
        row(
            size.image,
            number(size.compressed_bytes),
            number(size.unshared_bytes),
            number(size.config_bytes),
            number(len(size.layers)),
        )
        for size in facts.sizes.images
    )
    return table("Sizes of the images", columns, rows, detail, "sizes.json", "sizes stack")


def _near_identical(facts: ReleaseFacts, numbers: Mapping[str, int]) -> Iterator[Markup]:
    for pair in facts.sizes.near_identical[:20]:
        yield element(
            "p",
            f"Layers {numbers[pair.first]} and {numbers[pair.second]} have almost one size and nothing in common: "
            f"{pair.wasted_bytes:,} bytes that sharing might save.",
        )

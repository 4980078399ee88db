"""An edit list across frame rates: rejections with every reason, timeline, overlaps, gaps, cost."""

from fractions import Fraction
from math import ceil, floor

from workflow.stream import record

PROMPT = """# Media timeline: conform an edit list

- assets.json: rows of id, fps ([numerator, denominator]), frames, rate (cents per started second).
- edits.json: rows of id, asset, in, out (timecodes "HH:MM:SS:FF" in the asset), at (frame of the timeline).
- project.json: fps ([numerator, denominator]), end (frames of the timeline), budget (cents).

Rules
1. The nominal rate of an asset is its fps rounded up. A timecode is the frame ((HH x 60 + MM) x 60 + SS) x nominal +
   FF.
2. An edit is rejected with every code that applies. ASSET: no such asset; then only NEGATIVE can apply besides.
   FRAME: the FF of in or out is not below the nominal rate; then EMPTY, SOURCE and OVERRUN do not apply. EMPTY: out
   is not after in. SOURCE: out is larger than the asset's frames. NEGATIVE: at is below 0. OVERRUN: the edit is
   neither EMPTY nor NEGATIVE and would end after the project's end.
3. An edit uses the asset's frames from in up to, not including, out. On the timeline it lasts (out - in) x project
   fps / asset fps frames, rounded to the nearest integer, halves up, and covers [at, at + that).
4. An overlap is a pair of accepted edits that share frames. A gap is a longest range of [0, end) that no accepted
   edit covers.
5. An asset's cost is rate x (seconds of it that the accepted edits use in sum, at its exact fps, rounded up once).

Answer
- rejected: object, every rejected id to its codes, sorted
- timeline: rows [id, start, end] of the accepted edits, sorted by start, then id
- overlaps: rows [first id, second id, start, end], in timeline order of the first, then of the second
- gaps: rows [start, end], in order
- cost: sum over the assets, in cents
- within_budget: whether cost is at most budget (true or false)
"""
RATES = ((24, 1), (25, 1), (30, 1), (24000, 1001), (30000, 1001), (50, 1))


def make(stream, difficulty):
    while True:
        assets, project = _assets(stream, 2 + difficulty), {"fps": list(stream.pick(RATES)), "end": 1500 * difficulty}
        edits = _edits(stream, assets, project, 5 + 7 * difficulty)
        expected = _conform(assets, edits, project)
        codes = {code for found in expected["rejected"].values() for code in found}
        if len(codes) >= 3 + difficulty and len(expected["overlaps"]) > 1 and len(expected["gaps"]) > 1:
            break
    project["budget"] = expected["cost"] + stream.between(-900, 900)
    expected["within_budget"] = expected["cost"] <= project["budget"]
    return {"assets.json": assets, "edits.json": edits, "project.json": project}, expected


def _assets(stream, count):
    names = [f"reel-{number}" for number in stream.sample(range(10, 99), count)]
    return [
        record("id fps frames rate", name, list(fps), stream.between(500, 900), stream.between(20, 190))
        for name, fps in zip(names, stream.sample(RATES, count), strict=True)
    ]


def _nominal(asset):
    return ceil(Fraction(*asset["fps"]))


def _edits(stream, assets, project, count):
    edits = []
    for number in stream.sample(range(10, 99), count):
        asset = stream.pick(assets)
        nominal, start = _nominal(asset), stream.below(asset["frames"])
        end = start + stream.between(-20, 400 if stream.one_in(4) else 200)
        codes = [f"00:00:{max(f, 0) // nominal:02}:{max(f, 0) % nominal:02}" for f in (start, end)]
        if stream.one_in(6):
            codes[stream.below(2)] = f"00:00:{stream.between(1, 9):02}:{nominal + stream.below(3):02}"
        name = "lost" if stream.one_in(9) else asset["id"]
        at = stream.between(-30 if stream.one_in(4) else 0, project["end"] - 60)
        edits.append(record("id asset in out at", f"cut-{number}", name, *codes, at))
    return edits


def _place(edit, asset, project):
    """Codes, source frames, timeline frames."""
    codes = {"NEGATIVE"} if edit["at"] < 0 else set()
    if not asset:
        return codes | {"ASSET"}, 0, 0
    nominal, frames = _nominal(asset), []
    for text in (edit["in"], edit["out"]):
        hours, minutes, seconds, rest = map(int, text.split(":"))
        frames.append(((hours * 60 + minutes) * 60 + seconds) * nominal + rest)
        if rest >= nominal:
            codes.add("FRAME")
    used = frames[1] - frames[0]
    length = floor(used * Fraction(*project["fps"]) / Fraction(*asset["fps"]) + Fraction(1, 2))
    if "FRAME" not in codes:
        if used <= 0:
            codes.add("EMPTY")
        if frames[1] > asset["frames"]:
            codes.add("SOURCE")
        if not codes & {"EMPTY", "NEGATIVE"} and edit["at"] + length > project["end"]:
            codes.add("OVERRUN")
    return codes, used, length


def _conform(assets, edits, project):
    by_id, used, rejected, timeline = {a["id"]: a for a in assets}, {}, {}, []
    for edit in edits:
        codes, frames, length = _place(edit, by_id.get(edit["asset"]), project)
        if codes:
            rejected[edit["id"]] = sorted(codes)
        else:
            timeline.append([edit["id"], edit["at"], edit["at"] + length])
            used[edit["asset"]] = used.get(edit["asset"], 0) + frames
    timeline.sort(key=lambda row: (row[1], row[0]))
    overlaps = [
        [a[0], b[0], b[1], min(a[2], b[2])]
        for number, a in enumerate(timeline)
        for b in timeline[number + 1 :]
        if b[1] < a[2] and b[1] < b[2]
    ]
    gaps, reached = [], 0
    for _, start, end in [*timeline, ["", project["end"], project["end"]]]:
        if start > reached:
            gaps.append([reached, start])
        reached = max(reached, end)
    cost = sum(by_id[n]["rate"] * ceil(frames / Fraction(*by_id[n]["fps"])) for n, frames in used.items())
    return {"rejected": rejected, "timeline": timeline, "overlaps": overlaps, "gaps": gaps, "cost": cost}

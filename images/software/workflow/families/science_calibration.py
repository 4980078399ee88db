"""Gain, offset and drift from standards, medians, quarantine, weighted means as reduced fractions."""

from fractions import Fraction

from workflow.stream import record

PROMPT = """# Science calibration: from raw readings to results

- standards.json: rows of instrument, standard ("low", "high" or "low_end"), reference, minute, readings. Each
  instrument has all three; "low" and "high" were read at minute 0, "low_end" is the low standard again at the minute
  given.
- samples.json: rows of sample, instrument, minute, readings.
- limits.json: weights (instrument to weight), drift_limit, spread_limit, action_level.

Rules (exact arithmetic; the median of an even count is the mean of the two middle values)
1. L, H and E are an instrument's median readings of low, high and low_end; E was read at minute T. gain = (reference
   of high - reference of low) / (H - L); offset = reference of low - gain x L; drift = (E - L) / T.
2. A reading r at minute m becomes gain x (r - drift x m) + offset.
3. An instrument is quarantined if |gain x (E - L)| > drift_limit. All its rows are left out.
4. Of the rows left, one is rejected if gain x (largest reading - smallest reading) > spread_limit.
5. The value of a row is the median of its converted readings. The result of a sample is the mean of the values of its
   remaining rows, weighted with their instruments' weights, or null if none remains.

Answer (a fraction is [numerator, denominator], reduced, denominator above 0)
- gains: object, every instrument to its gain as a fraction
- quarantined: object, every quarantined instrument to its gain x (E - L) as a fraction
- rejected: rows [sample, instrument] of rule 4, sorted
- results: object, every sample to its result as a fraction, or null
- ranking: the samples with a result, largest first; equals by name
- release: whether every sample has a result and none is above action_level (true or false)
"""


def make(stream, difficulty):
    release = stream.below(4) > 1
    while True:
        standards, weights = _standards(stream, 2 + difficulty)
        limits = {"weights": weights, "drift_limit": 6, "spread_limit": 9, "action_level": stream.between(60, 95)}
        samples = _samples(stream, standards, 2 + 2 * difficulty)
        expected = _evaluate(standards, samples, limits)
        usable = len(standards) - len(expected["quarantined"])
        if 1 < usable < len(standards) and expected["rejected"] and expected["release"] == release:
            break
    rows = stream.shuffle([row for group in standards.values() for row in group])
    return {"standards.json": rows, "samples.json": samples, "limits.json": limits}, expected


def _standards(stream, count):
    standards, weights = {}, {}
    for name in [f"spec-{letter}" for letter in "ABCD"[:count]]:
        low, span, end = stream.between(40, 90), stream.pick((120, 150, 160, 200)), stream.pick((30, 40, 60))
        shift = stream.pick((-1, 1)) * stream.between(5, 11)
        rows = (("low", 10, 0, low), ("high", 110, 0, low + span), ("low_end", 10, end, low + shift))
        standards[name], weights[name] = [], stream.between(1, 5)
        for kind, reference, minute, middle in rows:
            readings = [middle + step for step in stream.shuffle((0, -stream.between(1, 4), stream.between(1, 4)))]
            values = name, kind, reference, minute, readings
            standards[name].append(record("instrument standard reference minute readings", *values))
    return standards, weights


def _samples(stream, standards, count):
    rows = []
    for number in range(1, count + 1):
        true = stream.between(25, 95)
        for name, (low, high, end) in standards.items():
            minute = stream.between(1, end["minute"])
            raw = low["readings"][0] + (true - 10) * (high["readings"][0] - low["readings"][0]) // 100
            noise = stream.between(3, 18)
            readings = [raw + stream.below(noise) for _ in range(stream.between(3, 5))]
            rows.append(record("sample instrument minute readings", f"S{number:02}", name, minute, readings))
    return stream.shuffle(rows)


def _median(values):
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else Fraction(ordered[half - 1] + ordered[half]) / 2


def _evaluate(standards, samples, limits):
    gains, drifts, offsets, quarantined, rejected = {}, {}, {}, {}, []
    for name, (low, high, end) in standards.items():
        level = _median(low["readings"])
        gains[name] = Fraction(high["reference"] - low["reference"]) / (_median(high["readings"]) - level)
        offsets[name] = low["reference"] - gains[name] * level
        moved = _median(end["readings"]) - level
        drifts[name] = Fraction(moved) / end["minute"]
        if abs(gains[name] * moved) > limits["drift_limit"]:
            quarantined[name] = _pair(gains[name] * moved)
    sums = {row["sample"]: [0, 0] for row in samples}
    for row in samples:
        name, readings = row["instrument"], row["readings"]
        if name in quarantined:
            continue
        if gains[name] * (max(readings) - min(readings)) > limits["spread_limit"]:
            rejected.append([row["sample"], name])
            continue
        value = _median([gains[name] * (r - drifts[name] * row["minute"]) + offsets[name] for r in readings])
        sums[row["sample"]][0] += value * limits["weights"][name]
        sums[row["sample"]][1] += limits["weights"][name]
    results = {sample: Fraction(total, weight) if weight else None for sample, (total, weight) in sorted(sums.items())}
    known = {sample: result for sample, result in results.items() if result is not None}
    return {
        "gains": {name: _pair(gain) for name, gain in gains.items()},
        "quarantined": quarantined,
        "rejected": sorted(rejected),
        "results": {sample: result if result is None else _pair(result) for sample, result in results.items()},
        "ranking": sorted(known, key=lambda sample: (-known[sample], sample)),
        "release": len(known) == len(results) and max(known.values()) <= limits["action_level"],
    }


def _pair(value):
    return [value.numerator, value.denominator]

"""One machine with release times, precedences and a blackout: least weighted tardiness, makespan, order."""

from workflow.stream import record

PROMPT = """# Industrial schedule: one machine

- jobs.json: rows of id, release, duration, due, weight.
- precedence.json: rows [a, b]: b may start only after a has ended.
- machine.json: blackout {start, end}: no job may run in any part of [start, end).

Rules
1. Times are integers from 0. One job runs at a time, without interruption. A job that runs from s to s + duration
   must not share time with the blackout; it may end at its start or begin at its end.
2. For an order of the jobs, each starts as early as it can: not before its release, nor before the job in front of it
   in the order has ended, nor so that it would run in the blackout.
3. Tardiness of a job is max(0, end - due). Choose the order (obeying the precedences) with the least sum of weight x
   tardiness, then the least end of the last job, then the list of ids that comes first.

Answer
- order: ids
- starts: object, id to start time
- weighted_tardiness: integer
- makespan: end of the last job
- late: ids with tardiness above 0, sorted
- held_by_blackout: whether some job starts exactly at the end of the blackout (true or false)
"""


def make(stream, difficulty):
    held = stream.one_in(2)
    while True:
        jobs, pairs, blackout = _shop(stream, 4 + 2 * difficulty)
        late, makespan, order = _best(jobs, pairs, blackout)
        starts = _starts(jobs, order, blackout)
        if late and held == (blackout["end"] in starts.values()):
            break
    expected = {
        "order": list(order),
        "starts": starts,
        "weighted_tardiness": late,
        "makespan": makespan,
        "late": sorted(name for name in order if starts[name] + jobs[name]["duration"] > jobs[name]["due"]),
        "held_by_blackout": held,
    }
    machine = {"blackout": blackout}
    return {"jobs.json": list(jobs.values()), "precedence.json": pairs, "machine.json": machine}, expected


def _shop(stream, count):
    names = [f"J{number:02}" for number in range(1, count + 1)]
    jobs = {}
    for name in names:
        release, duration = stream.between(0, 3 * count), stream.between(2, 9)
        due = release + duration + stream.between(0, 4 * count)
        jobs[name] = record("id release duration due weight", name, release, duration, due, stream.between(1, 5))
    line = stream.shuffle(names)
    pairs = [[line[at], line[at + stream.between(1, 2)]] for at in range(0, count - 2, 2)]
    start = stream.between(count, 3 * count)
    return jobs, pairs, {"start": start, "end": start + stream.between(4, 8)}


def _start(job, clock, blackout):
    start = max(clock, job["release"])
    inside = start < blackout["end"] and start + job["duration"] > blackout["start"]
    return blackout["end"] if inside else start


def _starts(jobs, order, blackout):
    starts, clock = {}, 0
    for name in order:
        starts[name] = _start(jobs[name], clock, blackout)
        clock = starts[name] + jobs[name]["duration"]
    return starts


def _best(jobs, pairs, blackout):
    """Grow sets of done jobs; of each set keep the labels (tardiness, end, order) that could still win."""
    labels = {frozenset(): [(0, 0, ())]}
    for _ in jobs:
        grown = {}
        for done, kept in labels.items():
            for name in jobs.keys() - done:
                if any(after == name and before not in done for before, after in pairs):
                    continue
                for late, clock, order in kept:
                    end = _start(jobs[name], clock, blackout) + jobs[name]["duration"]
                    cost = late + jobs[name]["weight"] * max(0, end - jobs[name]["due"])
                    grown.setdefault(done | {name}, []).append((cost, end, (*order, name)))
        labels = {done: _undominated(found) for done, found in grown.items()}
    return min(labels[frozenset(jobs)])


def _undominated(found):
    """A label that ends later and costs more cannot win; at equal cost the order may still decide."""
    kept = []
    for late, end, order in sorted(found):
        if not any(e <= end and (c < late or o < order) for c, e, o in kept):
            kept.append((late, end, order))
    return kept

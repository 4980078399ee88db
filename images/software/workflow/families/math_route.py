"""Shortest constrained route: checkpoints, forbidden nodes, exposure budget, windows, orderings."""

from heapq import heappop, heappush
from itertools import pairwise

from workflow.stream import record

PROMPT = """# Math route: fastest route under constraints

- graph.json: rows of a, b, minutes, exposure: roads that can be taken both ways.
- rules.json: start, goal, checkpoints, forbidden, orderings (rows [x, y]), exposure_budget.
- windows.json: object, node to [open, close].

Rules
1. A route is a walk along roads from start to goal that has visited every checkpoint; nodes and roads may be used
   again. It begins at minute 0; it ends the first time it is at the goal with every checkpoint visited. Start counts
   as visited.
2. Forbidden nodes are never entered. For an ordering [x, y], y is never entered before x has been visited.
3. Entering a node that has a window: before open one waits until open; after close it is not allowed. This holds at
   every visit. One waits nowhere else.
4. The sum of the exposures of the roads taken (each time) must not exceed exposure_budget. Waiting has no exposure.
5. Choose the route with the earliest arrival, then the least exposure, then the fewest roads, then the list of nodes
   that comes first.

Answer
- route: nodes from start to goal
- arrival: minute of arrival
- exposure: its total exposure
- waits: rows [node, minutes waited] above 0, in route order
- checkpoint_times: object, every checkpoint to the minute of its first visit (after the wait)
- revisits: whether any node is on the route twice (true or false)
"""


def make(stream, difficulty):
    revisits = stream.below(5) > 2
    while True:
        roads, rules, windows = _map(stream, difficulty)
        best = _search(roads, rules, windows)
        if best and len(best[3]) >= 5 + 2 * difficulty:
            expected = _describe(best, roads, rules, windows)
            if expected["waits"] and expected["revisits"] == revisits:
                return {"graph.json": roads, "rules.json": rules, "windows.json": windows}, expected


def _map(stream, difficulty):
    count = 5 + 4 * difficulty
    nodes = [f"N{number:02}" for number in stream.sample(range(10, 99), count)]
    pairs = {tuple(sorted((nodes[at], stream.pick(nodes[max(0, at - 3) : at])))) for at in range(1, count)}
    pairs |= {tuple(sorted(stream.sample(nodes, 2))) for _ in range(count)}
    keys = "a b minutes exposure"
    roads = [record(keys, a, b, stream.between(2, 9), stream.below(5)) for a, b in sorted(pairs)]
    middle = stream.shuffle(nodes[1:-1])
    checkpoints, forbidden = middle[: 1 + difficulty], middle[1 + difficulty : 2 + difficulty]
    windows = {}
    for node in sorted(middle[: 2 * difficulty + 1]):
        start = stream.between(4, 26)
        windows[node] = [start, start + stream.between(6, 24)]
    rules = {
        "start": nodes[0],
        "goal": nodes[-1],
        "checkpoints": sorted(checkpoints),
        "forbidden": forbidden,
        "orderings": [stream.sample(checkpoints, 2) for _ in range(difficulty > 1)] + [[checkpoints[0], middle[-1]]],
        "exposure_budget": stream.between(6, 8 + 5 * difficulty),
    }
    return roads, rules, windows


def _links(roads):
    links = {}
    for road in roads:
        for here, there in ((road["a"], road["b"]), (road["b"], road["a"])):
            links.setdefault(here, []).append((there, road["minutes"], road["exposure"]))
    return links


def _search(roads, rules, windows):
    """Labels (time, exposure, roads, path, marks); dropped if an earlier one is no worse in what follows."""
    links, marks = _links(roads), set(rules["checkpoints"]) | {x for x, _ in rules["orderings"]}
    needed, kept = set(rules["checkpoints"]), {}
    start = rules["start"]
    heap = [(0, 0, 0, [start], sorted(marks & {start}))]
    while heap:
        time, exposure, count, path, seen = heappop(heap)
        rest, known = (exposure, count, path), kept.setdefault((path[-1], *seen), [])
        if any(other <= rest for other in known):
            continue
        known.append(rest)
        if path[-1] == rules["goal"] and needed <= set(seen):
            return time, exposure, count, path
        for node, minutes, more in links[path[-1]]:
            opens, closes = windows.get(node, (0, 9999))
            blocked = node in rules["forbidden"] or any(y == node and x not in seen for x, y in rules["orderings"])
            if not blocked and time + minutes <= closes and exposure + more <= rules["exposure_budget"]:
                label = (max(opens, time + minutes), exposure + more, count + 1, [*path, node])
                heappush(heap, (*label, sorted({*seen, node} & marks)))
    return None


def _describe(best, roads, rules, windows):
    time, exposure, _, path = best
    links, clock, first, waits = _links(roads), 0, {path[0]: 0}, []
    for here, there in pairwise(path):
        reached = clock + next(minutes for node, minutes, _ in links[here] if node == there)
        clock = max(reached, windows.get(there, (0,))[0])
        first.setdefault(there, clock)
        if clock > reached:
            waits.append([there, clock - reached])
    return {
        "route": path,
        "arrival": time,
        "exposure": exposure,
        "waits": waits,
        "checkpoint_times": {node: first[node] for node in rules["checkpoints"]},
        "revisits": len(set(path)) < len(path),
    }

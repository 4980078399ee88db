"""One answer is right: the two optimisation families and the cover against plain enumeration of everything."""

import json
from itertools import chain, combinations, permutations

import pytest
from workflow.curriculum import make_task


def load(task):
    return [json.loads(text) for text in task.files.values()]


@pytest.mark.parametrize("seed", [101, 307, 1, 2])
def test_schedule_is_the_first_of_all_orders(seed):
    task = make_task("industrial_schedule", seed, 1)
    jobs, pairs, machine = load(task)
    start, end = machine["blackout"]["start"], machine["blackout"]["end"]
    ranked = []
    for order in permutations(sorted(jobs, key=lambda job: job["id"])):
        place = {job["id"]: number for number, job in enumerate(order)}
        if any(place[a] > place[b] for a, b in pairs):
            continue
        clock = late = 0
        for job in order:
            at = max(clock, job["release"])
            if not (at + job["duration"] <= start or at >= end):
                at = end
            clock = at + job["duration"]
            late += job["weight"] * max(0, clock - job["due"])
        ranked.append((late, clock, [job["id"] for job in order]))
    late, makespan, order = min(ranked)
    assert [task.expected[key] for key in ("weighted_tardiness", "makespan", "order")] == [late, makespan, order]


@pytest.mark.parametrize(("seed", "difficulty"), [(101, 1), (307, 1), (101, 2), (307, 2), (5, 1)])
def test_cover_is_the_first_of_all_subsets(seed, difficulty):
    task = make_task("software_change", seed, difficulty)
    suites = [suite for suite in load(task)[1] if not suite["quarantined"]]
    affected = set(task.expected["affected"])
    ranked = [
        (sum(s["cost"] for s in chosen), len(chosen), sorted(s["id"] for s in chosen))
        for count in range(len(suites) + 1)
        for chosen in combinations(suites, count)
        if affected <= set(chain.from_iterable(s["covers"] for s in chosen))
    ]
    assert (task.expected["suite_cost"], task.expected["suites"]) == (min(ranked)[0], min(ranked)[2])


@pytest.mark.parametrize("seed", [101, 307, 3])
def test_route_is_the_first_of_all_walks(seed):
    task = make_task("math_route", seed, 1)
    roads, rules, windows = load(task)
    best = [
        (task.expected["arrival"], task.expected["exposure"], len(task.expected["route"]) - 1, task.expected["route"])
    ]

    def walk(path, clock, exposure):
        """Every walk that is not yet worse than the answer."""
        if path[-1] == rules["goal"] and set(rules["checkpoints"]) <= set(path):
            best.append((clock, exposure, len(path) - 1, path))
            return
        for road in roads:
            if path[-1] not in (road["a"], road["b"]):
                continue
            node = road["a"] if path[-1] == road["b"] else road["b"]
            opens, closes = windows.get(node, (0, 10**6))
            reached, used = clock + road["minutes"], exposure + road["exposure"]
            early = any(y == node and x not in path for x, y in rules["orderings"])
            if node in rules["forbidden"] or early or reached > closes or used > rules["exposure_budget"]:
                continue
            if max(reached, opens) <= best[0][0]:
                walk([*path, node], max(reached, opens), used)

    walk([rules["start"]], 0, 0)
    assert len(best) > 1  # the walk found the answer itself
    assert min(best) == best[0]

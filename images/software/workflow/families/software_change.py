"""Dependency impact: affected modules, the cheapest suites that cover them, the build order."""

from itertools import combinations

from workflow.stream import record

PROMPT = """# Software change: impact, regression suites, build order

- modules.json: rows of name, minutes (build time), frozen, needs (rows of module, kind: "runtime" or "dev").
- suites.json: rows of id, cost, quarantined, covers (module names).
- change.json: changed (module names).

Rules
1. A changed module is affected and spreads. A module that needs a spreading module is affected; it spreads itself if at
   least one such need is of kind "runtime". A module whose only such needs are "dev" is affected but does not spread.
2. Choose suites that are not quarantined so that every affected module is covered by at least one of them: lowest total
   cost, then fewest suites, then the sorted list of ids that comes first.
3. Build the affected modules one after another. A module is ready when every affected module that it needs (of either
   kind) is built. Of the ready ones build the one with the most minutes, then the one whose name comes first.
4. The critical time is the largest sum of minutes along a chain of affected modules in which each needs the one before.

Answer
- affected: names, sorted
- suites: chosen ids, sorted
- suite_cost: their total cost
- build_order: names
- critical_minutes: integer
- needs_approval: whether any affected module is frozen (true or false)
"""


def make(stream, difficulty):
    while True:
        modules, changed = _modules(stream, difficulty)
        affected = _affected(modules, changed)
        if 4 + 2 * difficulty <= len(affected) <= len(modules) - 2:
            break
    suites = _suites(stream, 6 + 3 * difficulty, sorted(m["name"] for m in modules), affected)
    chosen = _cheapest(suites, affected)
    order, critical = _build(modules, affected)
    expected = {
        "affected": sorted(affected),
        "suites": [s["id"] for s in chosen],
        "suite_cost": sum(s["cost"] for s in chosen),
        "build_order": order,
        "critical_minutes": critical,
        "needs_approval": any(m["frozen"] for m in modules if m["name"] in affected),
    }
    modules = stream.shuffle(modules)
    return {"modules.json": modules, "suites.json": suites, "change.json": {"changed": changed}}, expected


def _modules(stream, difficulty):
    names = [f"mod-{number}" for number in stream.sample(range(10, 99), 8 + 5 * difficulty)]
    modules = []
    for index, name in enumerate(names):
        below = stream.sample(names[:index], min(index, stream.between(1, 3)))
        needs = [record("module kind", other, "dev" if stream.one_in(3) else "runtime") for other in below]
        modules.append(record("name minutes frozen needs", name, stream.between(2, 9), stream.one_in(9), needs))
    return modules, stream.sample(names[1:7], difficulty)


def _affected(modules, changed):
    affected, spreading = set(changed), set(changed)
    for module in modules:  # they come in dependency order
        kinds = {need["kind"] for need in module["needs"] if need["module"] in spreading}
        if kinds:
            affected.add(module["name"])
        if "runtime" in kinds:
            spreading.add(module["name"])
    return affected


def _suites(stream, count, names, affected):
    suites = []
    for number in range(count):
        values = f"suite-{number:02}", stream.between(3, 12), number % 5 == 4
        suites.append(record("id cost quarantined covers", *values, stream.sample(names, stream.between(3, 6))))
    usable = [suite for suite in suites if not suite["quarantined"]]
    for name in sorted(affected - {name for suite in usable for name in suite["covers"]}):
        stream.pick(usable)["covers"].append(name)
    return suites


def _cheapest(suites, affected):
    usable = [suite for suite in suites if not suite["quarantined"]]
    choices = (choice for count in range(1, len(usable) + 1) for choice in combinations(usable, count))
    covering = (c for c in choices if affected.issubset(name for suite in c for name in suite["covers"]))
    return min(covering, key=lambda c: (sum(s["cost"] for s in c), len(c), [s["id"] for s in c]))


def _build(modules, affected):
    needs = {m["name"]: {n["module"] for n in m["needs"]} & affected for m in modules if m["name"] in affected}
    minutes = {m["name"]: m["minutes"] for m in modules}
    done, order = {}, []
    while len(order) < len(needs):
        ready = [name for name in needs if name not in done and needs[name] <= done.keys()]
        name = min(ready, key=lambda name: (-minutes[name], name))
        done[name] = minutes[name] + max((done[other] for other in needs[name]), default=0)
        order.append(name)
    return order, max(done.values())

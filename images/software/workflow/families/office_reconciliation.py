"""Contact updates merged by alias, instant, source priority and row; rows that cannot be resolved."""

from datetime import UTC, datetime, timedelta, timezone

from workflow.stream import record

PROMPT = """# Office reconciliation: merge contact updates

- contacts.json: rows of id, name, aliases, email, phone, city, locked (field names).
- updates.json: rows of row, source, at (ISO 8601 with offset), who, field, value (text or null).
- sources.json: object, source to priority; 1 is the best.

Rules
1. Names are compared after trimming, lower-casing, and turning each run of spaces into one space. An update belongs to
   the contact whose name or one of whose aliases equals its `who`.
2. An update is unresolved for the first reason that applies: "source" (not in sources.json), "unknown" (no contact
   matches), "ambiguous" (two or more contacts match), "locked" (the contact locks the field).
3. Of the resolved updates of one contact and field the winner has the latest instant (offsets count), then the better
   priority, then the larger row. The others are superseded.
4. A winner's value replaces the field; null clears it. If that differs from what was there, it is a change.

Answer
- contacts: object, every contact id to {email, phone, city} after the merge
- changes: rows [id, field, old, new], sorted by id, then field
- unresolved: rows [row, reason], sorted
- superseded: row numbers, sorted
- wins: object, every source of sources.json to its number of winning updates (0 counts)
- complete: whether every contact has an email after the merge (true or false)
"""
FIRST = "Ada Boris Chen Dora Emil Farah Goran Hana"
LAST = "Moss Reed Wood"
CITIES = "Bern Cork Graz Oslo Pisa Riga"
FIELDS = ("email", "phone", "city")


def make(stream, difficulty):
    while True:
        contacts = _contacts(stream, 2 + 3 * difficulty)
        sources = {name: rank for rank, name in enumerate(stream.shuffle(("crm", "form", "import", "phone")), 1)}
        updates = _updates(stream, contacts, sources, 10 + 14 * difficulty)
        expected = _merge(contacts, updates, sources)
        if len({reason for _, reason in expected["unresolved"]}) == 4 and min(expected["wins"].values()):
            break
    return {"contacts.json": contacts, "updates.json": updates, "sources.json": sources}, expected


def _contacts(stream, count):
    contacts = []
    for number, first in enumerate(stream.sample(FIRST.split(), count), 1):
        last = stream.pick(LAST.split())
        aliases = [f"{first[0]}. {last}", f"{first} {last[0]}."]
        if number % 2:
            aliases.append(f"{stream.pick(CITIES.split())} office")
        email, phone, city = (_value(stream, field) for field in FIELDS)
        values = f"C{number:02}", f"{first} {last}", aliases, email, phone, city
        locked = [stream.pick(FIELDS)] if stream.one_in(3) else []
        contacts.append(record("id name aliases email phone city locked", *values, locked))
    contacts[1]["aliases"].append(contacts[0]["aliases"][0])  # at least one alias is shared
    return contacts


def _value(stream, field):
    number = stream.between(10, 99)
    return record("email phone city", f"u{number}@x.org", f"+41 55 {number}", stream.pick(CITIES.split()))[field]


def _updates(stream, contacts, sources, count):
    updates, start = [], datetime(2026, 3, 1, tzinfo=UTC)
    for row in stream.sample(range(100, 200), count):
        contact = stream.pick(contacts)
        who = stream.pick([contact["name"], *contact["aliases"], "Nobody Known"])
        who = stream.pick((who, who.upper(), "  " + who.replace(" ", "   "), who.lower() + " "))
        zone = timezone(timedelta(hours=stream.between(-5, 5)))
        at = (start + timedelta(hours=stream.below(12), minutes=30 * stream.below(2))).astimezone(zone).isoformat()
        source, field = stream.pick([*sources, *sources, "fax"]), stream.pick(FIELDS)
        value = None if stream.one_in(7) else _value(stream, field)
        updates.append(record("row source at who field value", row, source, at, who, field, value))
    return updates


def _owner(contacts, update, sources):
    who = " ".join(update["who"].lower().split())
    matches = [c for c in contacts if who in {name.lower() for name in (c["name"], *c["aliases"])}]
    if update["source"] not in sources:
        return None, "source"
    if len(matches) != 1:
        return None, "ambiguous" if matches else "unknown"
    return (None, "locked") if update["field"] in matches[0]["locked"] else (matches[0]["id"], "")


def _merge(contacts, updates, sources):
    unresolved, groups = [], {}
    for update in updates:
        owner, reason = _owner(contacts, update, sources)
        if reason:
            unresolved.append([update["row"], reason])
        else:
            rank = (datetime.fromisoformat(update["at"]), -sources[update["source"]], update["row"])
            groups.setdefault((owner, update["field"]), []).append((rank, update))
    merged = {c["id"]: {field: c[field] for field in FIELDS} for c in contacts}
    wins, changes, superseded = dict.fromkeys(sources, 0), [], []
    for (owner, field), ranked in sorted(groups.items()):
        *losers, (_, winner) = sorted(ranked, key=lambda pair: pair[0])
        superseded += [update["row"] for _, update in losers]
        wins[winner["source"]] += 1
        if merged[owner][field] != winner["value"]:
            changes.append([owner, field, merged[owner][field], winner["value"]])
            merged[owner][field] = winner["value"]
    return {
        "contacts": merged,
        "changes": changes,
        "unresolved": sorted(unresolved),
        "superseded": sorted(superseded),
        "wins": wins,
        "complete": all(contact["email"] for contact in merged.values()),
    }

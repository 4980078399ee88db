"""Access requests: allow or deny with every reason code, containment by number of denials."""

from ipaddress import ip_address, ip_network

from workflow.stream import record

PROMPT = """# Security triage: access requests of one day

- requests.json: rows of id, at ("HH:MM"), user, device, ip, action, resource, mfa.
- identities.json: rows of user, role, active, devices.
- policy.json: roles (role to {actions, hours: [from, to]}), networks (CIDR), restricted (resource to roles),
  mfa_actions, burst {minutes, limit}, watch, lock.

Rules. A request is denied if at least one code applies; all that apply are listed.
- USER: no identity has this user. Then INACTIVE, DEVICE, ACTION, RESOURCE and HOURS do not apply.
- INACTIVE: the identity is not active.
- DEVICE: the device is not one of the identity's.
- ACTION: the role does not list the action.
- RESOURCE: the resource is in restricted and the role is not among its roles.
- HOURS: `at` is outside [from, to) of the role; if to < from the hours run over midnight.
- NETWORK: the ip is in none of the networks.
- MFA: the action is in mfa_actions and mfa is false.
- BURST: the user made at least `limit` earlier requests (allowed or not) that were at most `minutes` before this one.
  Earlier means a smaller `at`, or the same `at` and a smaller id.

Containment of a user is "lock" with at least `lock` denied requests, else "watch" with at least `watch`, else "none".

Answer
- denied: object, every denied id to its codes, sorted
- allowed: ids, sorted
- containment: object, every user in requests.json to its level
- reason_counts: object, every code above to how many requests it denied (0 counts)
- reason_order: the codes that denied a request, most frequent first; equals in alphabetical order
- escalate: whether a user at level "lock" has an allowed request (true or false)
"""
CODES = "ACTION BURST DEVICE HOURS INACTIVE MFA NETWORK RESOURCE USER"
ROLES = "clerk admin night"
ACTIONS = "read write export delete grant"
RESOURCES = "wiki payroll ledger vault"


def make(stream, difficulty):
    escalate = stream.one_in(2)
    while True:
        identities, policy = _identities(stream, 2 + 2 * difficulty), _policy(stream)
        requests = _requests(stream, identities, policy, 10 + 14 * difficulty)
        expected = _judge(requests, identities, policy)
        wanted = {"none", "watch", "lock"} if difficulty > 1 else {"none", "lock"}
        levels, counts = set(expected["containment"].values()), expected["reason_counts"].values()
        if wanted <= levels and min(counts) >= difficulty - 1 and expected["escalate"] == escalate:
            break
    return {"requests.json": requests, "identities.json": identities, "policy.json": policy}, expected


def _clock(minutes):
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _identities(stream, count):
    rows = []
    for number, user in enumerate(stream.sample("abcdefgh", count)):
        devices = [f"{user}-{stream.between(1, 9)}" for _ in range(2)]
        rows.append(record("user role active devices", user, ROLES.split()[number % 3], number != 1, devices))
    return rows


def _policy(stream):
    roles = {}
    for role, start, end in zip(ROLES.split(), (8, 6, 20), (19, 22, 12), strict=True):
        hours = [_clock(hour * 60 + stream.between(-60, 60)) for hour in (start, end)]
        roles[role] = record("actions hours", sorted(stream.sample(ACTIONS.split(), 4)), hours)
    return {
        "roles": roles,
        "networks": [f"10.{stream.between(1, 40) * 4}.0.0/14", f"192.168.{stream.between(0, 9) * 16}.0/20"],
        "restricted": {name: stream.sample(sorted(roles), 2) for name in stream.sample(RESOURCES.split(), 2)},
        "mfa_actions": sorted(stream.sample(ACTIONS.split()[1:], 2)),
        "burst": {"minutes": stream.between(10, 20), "limit": 2},
        "watch": 3,
        "lock": 5,
    }


def _requests(stream, identities, policy, count):
    rows, minute = [], stream.between(360, 420)
    for number in range(count):
        minute += stream.pick((0, 2, 7, 30, 45))
        who = stream.pick(identities) if number else record("user devices", "z", ["z-1"])
        net = ip_network(stream.pick(policy["networks"]))
        ip = net[0] + stream.below(net.num_addresses * 9 // 8)  # one in nine falls just behind the network
        device = stream.pick(who["devices"]) if stream.below(7) else "kiosk"
        action, resource, mfa = stream.pick(ACTIONS.split()), stream.pick(RESOURCES.split()), not stream.one_in(4)
        values = f"R{number:02}", _clock(minute % 1440), who["user"], device, str(ip), action, resource, mfa
        rows.append(record("id at user device ip action resource mfa", *values))
    return stream.shuffle(rows)


def _codes(row, who, policy, earlier):
    codes = {
        "USER": not who,
        "NETWORK": not any(ip_address(row["ip"]) in ip_network(net) for net in policy["networks"]),
        "MFA": row["action"] in policy["mfa_actions"] and not row["mfa"],
        "BURST": earlier >= policy["burst"]["limit"],
    }
    if who:
        role, (start, end) = who["role"], policy["roles"][who["role"]]["hours"]
        late, early = row["at"] >= start, row["at"] < end
        codes["INACTIVE"] = not who["active"]
        codes["DEVICE"] = row["device"] not in who["devices"]
        codes["ACTION"] = row["action"] not in policy["roles"][role]["actions"]
        codes["RESOURCE"] = role not in policy["restricted"].get(row["resource"], (role,))
        codes["HOURS"] = not (late or early if end < start else late and early)
    return sorted(code for code, applies in codes.items() if applies)


def _judge(requests, identities, policy):
    people, times, denied, denials = {who["user"]: who for who in identities}, {}, {}, {}
    for row in sorted(requests, key=lambda row: (row["at"], row["id"])):
        user, now = row["user"], int(row["at"][:2]) * 60 + int(row["at"][3:])
        before = times.setdefault(user, [])
        earlier = sum(now - past <= policy["burst"]["minutes"] for past in before)
        before.append(now)
        codes = _codes(row, people.get(user), policy, earlier)
        denials[user] = denials.get(user, 0) + bool(codes)
        if codes:
            denied[row["id"]] = codes
    counts = {code: sum(code in codes for codes in denied.values()) for code in CODES.split()}
    steps = ("none", "watch", "lock")
    level = {user: steps[(n >= policy["watch"]) + (n >= policy["lock"])] for user, n in denials.items()}
    allowed = [row for row in requests if row["id"] not in denied]
    return {
        "denied": denied,
        "allowed": sorted(row["id"] for row in allowed),
        "containment": level,
        "reason_counts": counts,
        "reason_order": sorted(filter(counts.get, counts), key=lambda code: (-counts[code], code)),
        "escalate": any(level[row["user"]] == "lock" for row in allowed),
    }

"""A private Sigstore for the local target: it proves the mechanics of keyless signing, not third-party trust.

Reading order: `keys` (what the state folder holds), `identity` (OIDC tokens), `certificates` (Fulcio), `tlog` (the
append-only log), `rekor` (its two APIs), `rfc3161` and `tsa` (signed timestamps), `service` (all of it on one state
folder), `server` (HTTP on 127.0.0.1), `trust` (what clients pin). See docs/adr/0007.
"""

"""The local target's services and sources: engine, registry, private Sigstore, base images from real packages."""

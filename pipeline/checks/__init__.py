"""Policy checks: one module, one check; observations in, findings out. `registry.CHECKS` names them all."""

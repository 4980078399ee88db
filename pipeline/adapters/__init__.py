"""Every effect on the world, one module an outside thing."""

"""Types only: what the stages hand to one another. Nothing here touches disk, network, clock or environment."""

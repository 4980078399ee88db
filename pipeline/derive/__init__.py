"""Pure transforms over streams: from entries to layers, from a layer to the same layer without what must go."""

"""The stages: numbered steps that call ports. Each reads the record that the stage before left, and checks it."""

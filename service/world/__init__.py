"""A small shopping world: catalogue, search, problems and scripted agents, all from one seed. No clock, no network."""

"""Model selection: C and gamma, and the machine, at a small multiple of the cost of one fit."""

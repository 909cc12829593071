"""The demo's people: what they ask of the lakehouse, and a runner that asks it for real."""

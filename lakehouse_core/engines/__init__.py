"""Executing adapters, one per engine, behind one Protocol and a capability record."""

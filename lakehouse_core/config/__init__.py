"""Configuration: pydantic models, loader, JSON schema."""

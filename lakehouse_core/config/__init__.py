"""Configuration: pydantic models, loader, JSON schema.

from lakehouse_core.config import load_config

config = load_config().config
"""

from lakehouse_core.config.loader import Loaded, load_config
from lakehouse_core.config.models import Config
from lakehouse_core.config.secrets import resolve_secret

__all__ = ["Config", "Loaded", "load_config", "resolve_secret"]

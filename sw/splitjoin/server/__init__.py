"""`splitjoin serve`: continuous joins of a pair of streams behind Arrow Flight, with results that stay."""

from .config import ServerConfig, read_config
from .service import JoinService, check_config

__all__ = ["JoinService", "ServerConfig", "check_config", "read_config"]

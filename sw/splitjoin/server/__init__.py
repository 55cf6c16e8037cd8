"""`splitjoin serve`: continuous joins of a pair of streams behind Arrow Flight, with results that stay."""

from .config import ServerConfig, read_config
from .service import JoinService

__all__ = ["JoinService", "ServerConfig", "read_config"]

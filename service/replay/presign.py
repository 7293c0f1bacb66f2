"""Expiring signed paths for objects, in the manner of a presigned S3 URL. It stores nothing and sends nothing."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import urlencode

_DATE_FORMAT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Presigner:
    """Signs paths under one secret key: its own, unless it is given one."""

    lifetime_seconds: int = 300
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def sign(self, path: str, now: datetime) -> tuple[str, datetime]:
        """The path with its signed query, and when it expires."""
        date = now.astimezone(UTC).strftime(_DATE_FORMAT)
        query = {"X-Amz-Date": date, "X-Amz-Expires": str(self.lifetime_seconds)}
        query["X-Amz-Signature"] = self._signature(path, date, query["X-Amz-Expires"])
        return f"{path}?{urlencode(query)}", now + timedelta(seconds=self.lifetime_seconds)

    def allows(self, path: str, query: Mapping[str, str], now: datetime) -> bool:
        """Whether the query carries a signature of this path that has not expired."""
        date, expires = query.get("X-Amz-Date", ""), query.get("X-Amz-Expires", "")
        signature = self._signature(path, date, expires)
        if not hmac.compare_digest(signature.encode(), query.get("X-Amz-Signature", "").encode()):
            return False
        signed_at = datetime.strptime(date, _DATE_FORMAT).replace(tzinfo=UTC)
        return now < signed_at + timedelta(seconds=int(expires))

    def _signature(self, path: str, date: str, expires: str) -> str:
        return hmac.new(self.key, f"{path}\n{date}\n{expires}".encode(), sha256).hexdigest()

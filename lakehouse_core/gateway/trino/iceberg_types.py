"""Types of Iceberg columns as Trino's Iceberg connector names them, and as JDBC numbers them."""

from __future__ import annotations

from dataclasses import dataclass

_SIMPLE = {
    "boolean": "boolean",
    "int": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp(6)",
    "timestamptz": "timestamp(6) with time zone",
    "timestamp_ns": "timestamp(9)",
    "timestamptz_ns": "timestamp(9) with time zone",
    "string": "varchar",
    "uuid": "uuid",
    "binary": "varbinary",
    "variant": "json",
    "unknown": "unknown",
}
# java.sql.Types
_JDBC = {
    "boolean": 16,
    "integer": 4,
    "bigint": -5,
    "real": 7,
    "double": 8,
    "decimal": 3,
    "date": 91,
    "time": 92,
    "timestamp": 93,
    "varchar": 12,
    "varbinary": -3,
    "array": 2003,
}
_OTHER = 2000  # JAVA_OBJECT
_WITH_ZONE = 2014


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0

    def type(self) -> str:
        """The type at this place, in Trino's words."""
        word = self._until("<>,:(")
        if self._take("("):
            numbers = self._until(")").replace(" ", "")
            self._take(")")
            return f"decimal({numbers})" if word == "decimal" else "varbinary"
        if word in ("list", "map", "struct") and self._take("<"):
            parts = [self._field() if word == "struct" else self.type()]
            while self._take(","):
                parts.append(self._field() if word == "struct" else self.type())
            self._take(">")
            name = {"list": "array", "map": "map", "struct": "row"}[word]
            return f"{name}({', '.join(parts)})"
        return "varbinary" if word.startswith("fixed") else _SIMPLE.get(word, "varchar")

    def _field(self) -> str:
        name = self._until(":")
        self._take(":")
        return f"{name} {self.type()}"

    def _until(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip()

    def _take(self, character: str) -> bool:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] == character:
            self.at += 1
            return True
        return False


def trino_type(iceberg: str) -> str:
    """Trino's name of an Iceberg type: `list<long>` is `array(bigint)`."""
    return _Reader(iceberg.replace("fixed[", "fixed(").replace("]", ")")).type()


def jdbc_type(trino: str) -> int:
    """JDBC's number of a type of Trino's."""
    if trino.endswith("with time zone"):
        return _WITH_ZONE
    return _JDBC.get(trino.partition("(")[0], _OTHER)

#!/usr/bin/env bash
# Makes sure that a program from outside Python is there: system.sh java|chromium
# Installs Debian's package when run as root on Debian or a relative; otherwise says what is missing.
set -euo pipefail

say() { echo "system: $*" >&2; }

has_java() {
  { [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; } || command -v java >/dev/null
}

has_chromium() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null
}

install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    return 1
  fi
  say "installing $1 with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "$1" >&2 ||
    { apt-get update >&2 && apt-get install -y --no-install-recommends "$1" >&2; }
}

case "${1:-}" in
  java)
    has_java || install openjdk-17-jre-headless || true
    has_java || {
      say "Java is missing: Spark needs Java 17 or 21 (Trino needs 24 or newer)."
      say "Debian/Ubuntu: apt-get install openjdk-17-jre-headless; or set JAVA_HOME."
      exit 3
    }
    ;;
  chromium)
    has_chromium || install chromium || true
    has_chromium || {
      say "Chromium is missing: the browser test opens every page with it."
      say "Debian/Ubuntu: apt-get install chromium; or install Chrome."
      exit 3
    }
    ;;
  *)
    say "usage: system.sh java|chromium"
    exit 2
    ;;
esac
